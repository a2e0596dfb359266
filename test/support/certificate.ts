/**
 * Makes self-signed X.509 certificates for tests with node:crypto only, because Node can't make them and
 * openssl may be missing. DER after RFC 5280, with RSA and SHA-256 as the stated algorithm for any key.
 */
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto'

export type Certificate = { pem: string; key: KeyObject; key_pem: string }

const der = (tag: number, ...parts: Buffer[]): Buffer => {
  const content = Buffer.concat(parts)
  const { length } = content
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from([tag, ...size]), content])
}

const sequence = (...parts: Buffer[]): Buffer => der(0x30, ...parts)
const oid = (hex: string): Buffer => der(0x06, Buffer.from(hex, 'hex'))
const utcTime = (time: Date): Buffer =>
  der(0x17, Buffer.from(`${time.toISOString().slice(2, 19).replace(/[-:T]/g, '')}Z`))

const SHA256_WITH_RSA = sequence(oid('2a864886f70d01010b'), der(0x05))

const nameOf = (common_name: string): Buffer =>
  sequence(der(0x31, sequence(oid('550403'), der(0x0c, Buffer.from(common_name)))))

const altNames = (hosts: readonly string[]): Buffer => {
  const names = sequence(...hosts.map((host) => der(0x82, Buffer.from(host))))
  return der(0xa3, sequence(sequence(oid('551d11'), der(0x04, names))))
}

type Choices = { begins?: Date; expires?: Date; type?: 'rsa' | 'ec' }

/** Makes a certificate for these hosts with its own key pair, by default valid for a day from an hour ago. */
export function makeCertificate(
  hosts: readonly string[],
  {
    expires = new Date(Date.now() + 86_400_000),
    begins = new Date(Math.min(Date.now(), expires.getTime()) - 3_600_000),
    type = 'rsa',
  }: Choices = {},
): Certificate {
  const { privateKey: key, publicKey } =
    type === 'rsa'
      ? generateKeyPairSync('rsa', { modulusLength: 2048 })
      : generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const name = nameOf(hosts[0] ?? 'test')
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))),
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    SHA256_WITH_RSA,
    name,
    sequence(utcTime(begins), utcTime(expires)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    altNames(hosts),
  )
  const signature = der(0x03, Buffer.from([0]), sign('sha256', body, key))
  const base64 = sequence(body, SHA256_WITH_RSA, signature).toString('base64')
  const pem = `-----BEGIN CERTIFICATE-----\n${base64.replace(/.{64}/g, '$&\n').trimEnd()}\n-----END CERTIFICATE-----\n`
  return { pem, key, key_pem: key.export({ type: 'pkcs8', format: 'pem' }).toString() }
}
