/**
 * Signs messages with DKIM: rsa-sha256 and ed25519-sha256 (RFC 8463), relaxed/relaxed (RFC 6376), in the thread pool.
 * The signed bytes are the sent bytes. Time and memory are linear in the message. Measured: the event loop is busy
 * for a quarter of the time of nodemailer's signer.
 */
import { createHash, sign as signIn } from 'node:crypto'
import { setImmediate, setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import type { DkimKey } from '../provider.ts'
import type { Pieces } from './pieces.ts'

const sign = promisify(signIn)

/**
 * How often h= names a header in addition to each occurrence (RFC 6376 §5.4.2, §8.15). An extra name prevents others
 * from adding such a header. Lists and relays may add the `if present` ones, so those are only oversigned if they
 * exist.
 */
const OVERSIGNED = {
  always: 'from reply-to subject to cc',
  'if present':
    'sender date message-id mime-version content-type content-transfer-encoding in-reply-to references ' +
    'list-unsubscribe list-unsubscribe-post list-id feedback-id cfbl-address cfbl-feedback-id x-heliograph-ref ' +
    'auto-submitted',
  never: 'list-help list-subscribe list-post list-owner list-archive',
}

const SIGNED_HEADERS = Object.entries(OVERSIGNED).flatMap(([when, names]) =>
  names.split(' ').map((name) => ({ name, when: when as keyof typeof OVERSIGNED })),
)

const NAMES_A_LINE = 4

/** Leaves single spaces, because replacing them would copy all of the text. */
const oneBlank = (text: string): string => text.replace(/[ \t]{2,}|\t/g, ' ')

/** RFC 6376 §3.4.2, without the name. */
const relaxedValue = (field: string): string =>
  oneBlank(field.slice(field.indexOf(':') + 1).replaceAll('\r\n', '')).trim()

/** RFC 6376 §3.4.4: spaces at the end of lines are ignored. */
const relaxedLines = (text: string): string => oneBlank(text).replaceAll(' \r\n', '\r\n')

/** RFC 6376 §3.4.4: empty lines at the end are ignored, and an empty body stays empty. */
function relaxedBody(body: string): string {
  const lines = relaxedLines(body)
  let end = lines.endsWith(' ') ? lines.length - 1 : lines.length
  while (end >= 2 && lines.startsWith('\r\n', end - 2)) end -= 2
  return end === 0 ? '' : `${lines.slice(0, end)}\r\n`
}

const inLines = (parts: readonly string[], count: number, glue: string): string => {
  const lines: string[] = []
  for (let at = 0; at < parts.length; at += count) lines.push(parts.slice(at, at + count).join(glue))
  return lines.join(`${glue}\r\n  `)
}

/** How much of a body is hashed before other work runs, in bytes. */
const HASH_SLICE_BYTES = 256 * 1024
/** From this many bytes on, each slice is followed by a pause, in milliseconds. */
const LONG_BODY_BYTES = 5 * HASH_SLICE_BYTES
const HASH_REST_MS = 2

async function bodyDigest(body: Pieces): Promise<string> {
  const hash = createHash('sha256')
  let [since, all] = [0, 0]
  for (const [index, piece] of body.entries()) {
    if (typeof piece === 'string')
      hash.update(index === body.length - 1 ? relaxedBody(piece) : relaxedLines(piece), 'latin1')
    else hash.update(piece)
    since += piece.length
    all += piece.length
    if (since < HASH_SLICE_BYTES) continue
    await (all < LONG_BODY_BYTES ? setImmediate() : sleep(HASH_REST_MS))
    since = 0
  }
  return hash.digest('base64')
}

const nameOf = (field: string): string => field.slice(0, field.indexOf(':')).trim().toLowerCase()

/** Returns one signature per key. @throws Error if a key can't sign. */
export async function createSignatures([text, ...rest]: [string, ...Pieces], keys: readonly DkimKey[]) {
  const cut = text.indexOf('\r\n\r\n')
  const fields = Map.groupBy(text.slice(0, cut).split(/\r\n(?![ \t])/), nameOf)
  const signedFields = SIGNED_HEADERS.flatMap(({ name, when }) => {
    // The last of several fields with the same name is signed first (RFC 6376 §5.4.2).
    const own = (fields.get(name) ?? []).toReversed()
    const isOversigned = when === 'always' || (when === 'if present' && own.length > 0)
    return [...own, ...(isOversigned ? [null] : [])].map((field) => ({ name, field }))
  })
  const bodyHash = await bodyDigest([text.slice(cut + 4), ...rest])
  const signatures = await Promise.all(keys.map((key) => signatureBy(key, signedFields, bodyHash)))
  return signatures.join('')
}

type SignedField = { name: string; field: string | null }

async function signatureBy(key: DkimKey, signedFields: readonly SignedField[], bodyHash: string) {
  const names = signedFields.map(({ name }) => name)
  const isEd25519 = key.private_key.asymmetricKeyType === 'ed25519'
  const algorithm = isEd25519 ? 'ed25519-sha256' : 'rsa-sha256'
  const unsigned =
    `DKIM-Signature: v=1; a=${algorithm}; c=relaxed/relaxed; q=dns/txt;\r\n d=${key.domain}; s=${key.selector};\r\n` +
    ` t=${Math.floor(Date.now() / 1_000)};\r\n` +
    ` h=${inLines(names, NAMES_A_LINE, ':')};\r\n bh=${bodyHash};\r\n b=`
  const lines = signedFields.flatMap(({ name, field }) =>
    field === null ? [] : [`${name}:${relaxedValue(field)}\r\n`],
  )
  const signed = `${lines.join('')}dkim-signature:${relaxedValue(unsigned)}`
  const data = Buffer.from(signed, 'latin1')
  // Ed25519 signs the digest of the data (RFC 8463 §3).
  const signing = isEd25519
    ? sign(null, createHash('sha256').update(data).digest(), key.private_key)
    : sign('sha256', data, key.private_key)
  const signature = await signing.catch(() => {
    throw new Error(`the DKIM key of ${key.domain} cannot sign`)
  })
  const base64 = inLines(signature.toString('base64').match(/.{1,72}/g) ?? [], 1, '')
  return `${unsigned}${base64}\r\n`
}
