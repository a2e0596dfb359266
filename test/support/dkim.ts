/**
 * Verifies DKIM signatures from RFC 6376 only (rsa-sha256, relaxed/relaxed), independently of the signer and
 * without nodemailer.
 */
import { createHash, createVerify, type KeyObject } from 'node:crypto'

type DkimVerdict = {
  body_matches: boolean
  signature_matches: boolean
  /** The names in h=, in lower case. */
  signed: string[]
  domain: string
  selector: string
}

/** Verifies the first DKIM-Signature of a message in wire format. */
export function verifyDkim(raw: Buffer, public_key: KeyObject): DkimVerdict {
  const message = raw.toString('latin1')
  const cut = message.indexOf('\r\n\r\n')
  const fields = message.slice(0, cut).split(/\r\n(?![ \t])/)
  const signature = fields.find((field) => /^dkim-signature:/i.test(field)) ?? ''
  const tags = tagsOf(signature)
  const tag = (name: string): string => tags.get(name) ?? ''
  const signed = tag('h').toLowerCase().split(':')
  const unsigned = signature.replace(/(;\s*b=)[^;]*$/, '$1')
  const input = [...chosen(fields, signed), unsigned].map(relaxedHeader).join('\r\n')
  const body = relaxedBody(message.slice(cut + 4))
  return {
    body_matches: createHash('sha256').update(body, 'latin1').digest('base64') === tag('bh'),
    signature_matches:
      tag('a') === 'rsa-sha256' &&
      tag('c') === 'relaxed/relaxed' &&
      createVerify('RSA-SHA256').update(input, 'latin1').verify(public_key, tag('b'), 'base64'),
    signed,
    domain: tag('d'),
    selector: tag('s'),
  }
}

const tagsOf = (field: string): Map<string, string> =>
  new Map(
    field
      .slice(field.indexOf(':') + 1)
      .split(';')
      .map((tag) => tag.replace(/\s+/g, ''))
      .map((tag) => [tag.slice(0, tag.indexOf('=')), tag.slice(tag.indexOf('=') + 1)] as const),
  )

/** RFC 6376 §5.4.2: the last of several fields with the same name is signed first. */
function chosen(fields: readonly string[], names: readonly string[]): string[] {
  const left = [...fields]
  return names.flatMap((name) => {
    const at = left.findLastIndex((field) => field.slice(0, field.indexOf(':')).toLowerCase() === name)
    return at < 0 ? [] : left.splice(at, 1)
  })
}

function relaxedHeader(field: string): string {
  const colon = field.indexOf(':')
  const value = field.slice(colon + 1).replace(/\r\n/g, '')
  return `${field.slice(0, colon).trim().toLowerCase()}:${value.replace(/[ \t]+/g, ' ').trim()}`
}

function relaxedBody(body: string): string {
  const lines = body.split('\r\n').map((line) => line.replace(/[ \t]+/g, ' ').replace(/ $/, ''))
  while (lines.at(-1) === '') lines.pop()
  return lines.length === 0 ? '' : `${lines.join('\r\n')}\r\n`
}
