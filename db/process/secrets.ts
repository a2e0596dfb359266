/**
 * Everything that SECRET_KEY protects: private keys at rest, and tokens that come back. Each purpose has its own key,
 * derived by HKDF, so that a token of one kind is never valid for another. During a rotation, the other key only
 * decrypts and verifies.
 */
import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  hkdfSync,
  type KeyObject,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto'

/** The purposes of keys. The derivation contains the name, which must never change. */
export type SecretPurpose =
  | 'dkim'
  | 'erasure'
  | 'unsubscribe'
  | 'unsubscribe-broadcast'
  | 'verp'
  | 'csrf'
  | 'notice-cookie'
  | 'openid-cookie'
  | 'question'
  | 'canary'
  | 'webhook'
  | 'whatsapp'

export type Secrets = {
  /** AES-256-GCM: nonce, tag and ciphertext in one buffer. Only opens with the same `about`, its owner. */
  encrypt(purpose: SecretPurpose, plain: Buffer, about?: string): Buffer
  /** Does the same with the same bytes for the same text, which reveals whether two texts are equal. */
  encryptAlike(purpose: SecretPurpose, plain: Buffer, about: string): Buffer
  /** @throws Error if the buffer was not encrypted for this purpose and `about` with a key that we know. */
  decrypt(purpose: SecretPurpose, sealed: Buffer, about?: string): Buffer
  /** Returns the first `length` bytes of an HMAC-SHA256 over the data. */
  sign(purpose: SecretPurpose, data: Buffer, length?: number): Buffer
  /** Returns the results of `sign` with each key, to look up data stored under either. */
  signatures(purpose: SecretPurpose, data: Buffer, length?: number): Buffer[]
  /** True if `signature` is the result of `sign` with the current or the previous key. Compares in constant time. */
  verify(purpose: SecretPurpose, data: Buffer, signature: Buffer): boolean
}

const NONCE = 12
const TAG = 16
// Shorter signatures could be guessed.
const SHORTEST_SIGNATURE = 8

function createKeyring(secretKey: string): Secrets {
  // As key objects, because Node prepares other keys for each use, which costs more than an HMAC of a few bytes.
  const keys = new Map<string, KeyObject>()
  const keyFor = (purpose: SecretPurpose | `${SecretPurpose}/nonce`): KeyObject => {
    const known = keys.get(purpose)
    if (known) return known
    const derived = createSecretKey(Buffer.from(hkdfSync('sha256', secretKey, 'heliograph', purpose, 32)))
    keys.set(purpose, derived)
    return derived
  }
  const sign = (purpose: SecretPurpose, data: Buffer, length = 16): Buffer =>
    createHmac('sha256', keyFor(purpose)).update(data).digest().subarray(0, length)

  const seal = (purpose: SecretPurpose, nonce: Buffer, plain: Buffer, about: string): Buffer => {
    const cipher = createCipheriv('aes-256-gcm', keyFor(purpose), nonce, { authTagLength: TAG })
    cipher.setAAD(Buffer.from(about))
    const body = Buffer.concat([cipher.update(plain), cipher.final()])
    return Buffer.concat([nonce, cipher.getAuthTag(), body])
  }

  return {
    encrypt: (purpose, plain, about = '') => seal(purpose, randomBytes(NONCE), plain, about),
    encryptAlike(purpose, plain, about) {
      // The nonce is derived from the text with its own key, so that each is used for one text only.
      const nonce = createHmac('sha256', keyFor(`${purpose}/nonce`))
        .update(about)
        .update('\0')
        .update(plain)
      return seal(purpose, nonce.digest().subarray(0, NONCE), plain, about)
    },
    decrypt(purpose, sealed, about = '') {
      const nonce = sealed.subarray(0, NONCE)
      const decipher = createDecipheriv('aes-256-gcm', keyFor(purpose), nonce, { authTagLength: TAG })
      decipher.setAAD(Buffer.from(about))
      decipher.setAuthTag(sealed.subarray(NONCE, NONCE + TAG))
      return Buffer.concat([decipher.update(sealed.subarray(NONCE + TAG)), decipher.final()])
    },
    sign,
    signatures: (...signing) => [sign(...signing)],
    verify(purpose, data, signature) {
      const expected = sign(purpose, data, signature.length)
      return signature.length >= SHORTEST_SIGNATURE && timingSafeEqual(expected, signature)
    },
  }
}

/** Creates the secrets for SECRET_KEY, and for the other key of a rotation. */
export function createSecrets(secretKey: string, otherKey?: string): Secrets {
  const current = createKeyring(secretKey)
  if (otherKey === undefined) return current
  const other = createKeyring(otherKey)
  return {
    ...current,
    decrypt(purpose, sealed, about) {
      try {
        return current.decrypt(purpose, sealed, about)
      } catch {
        return other.decrypt(purpose, sealed, about)
      }
    },
    signatures: (...signing) => [current.sign(...signing), other.sign(...signing)],
    verify: (purpose, data, signature) =>
      current.verify(purpose, data, signature) || other.verify(purpose, data, signature),
  }
}
