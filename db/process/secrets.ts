/**
 * What SECRET_KEY protects: private keys at rest, and tokens that come back from outside.
 * Each purpose has a key of its own, derived by HKDF, so that a token of one kind is never one of another.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  hkdfSync,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto'

/** The purposes a key is derived for; the name is part of the derivation and must never change. */
export type Purpose = 'dkim' | 'erasure' | 'unsubscribe' | 'verp' | 'csrf' | 'cookie'

export type Secrets = {
  /** AES-256-GCM: nonce, tag and ciphertext in one buffer. */
  encrypt(purpose: Purpose, plain: Buffer): Buffer
  /** @throws Error when the buffer was not encrypted for this purpose with this SECRET_KEY. */
  decrypt(purpose: Purpose, sealed: Buffer): Buffer
  /** The first `length` bytes of an HMAC-SHA256 over the data. */
  sign(purpose: Purpose, data: Buffer, length?: number): Buffer
  /** Whether `signature` is what `sign` gives for the data, in constant time. */
  verify(purpose: Purpose, data: Buffer, signature: Buffer): boolean
}

const NONCE = 12
const TAG = 16

/** Derives the purposes' keys from SECRET_KEY, each once. */
export function createSecrets(secretKey: string): Secrets {
  const keys = new Map<Purpose, Buffer>()
  const keyFor = (purpose: Purpose): Buffer => {
    const known = keys.get(purpose)
    if (known) return known
    const derived = Buffer.from(hkdfSync('sha256', secretKey, 'heliograph', purpose, 32))
    keys.set(purpose, derived)
    return derived
  }
  const sign = (purpose: Purpose, data: Buffer, length = 16): Buffer =>
    createHmac('sha256', keyFor(purpose)).update(data).digest().subarray(0, length)

  return {
    encrypt(purpose, plain) {
      const nonce = randomBytes(NONCE)
      const cipher = createCipheriv('aes-256-gcm', keyFor(purpose), nonce)
      const body = Buffer.concat([cipher.update(plain), cipher.final()])
      return Buffer.concat([nonce, cipher.getAuthTag(), body])
    },
    decrypt(purpose, sealed) {
      const decipher = createDecipheriv('aes-256-gcm', keyFor(purpose), sealed.subarray(0, NONCE))
      decipher.setAuthTag(sealed.subarray(NONCE, NONCE + TAG))
      return Buffer.concat([decipher.update(sealed.subarray(NONCE + TAG)), decipher.final()])
    },
    sign,
    verify(purpose, data, signature) {
      const expected = sign(purpose, data, signature.length)
      return signature.length >= 8 && timingSafeEqual(expected, signature)
    },
  }
}
