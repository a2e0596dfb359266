/**
 * Reads the envelope that Postfix's pipe adds to mail (`flags=DORq`). The web process uses it to select reports, and
 * the worker to read them. Pure. Linear, and reads only the header section.
 */

export type ReportEnvelope = {
  /** The local part of the recipient in lower case, '' without one. */
  to: string
  /** The bare recipient, as written. */
  recipient: string
  /** The bare envelope sender. '' if it is empty, null without such a line. */
  sender: string | null
  /** The address of the From header, '' without one. */
  from: string
}

const MAX_HEADER_BYTES = 256 * 1024

/** The header section of raw mail, unfolded. */
function readHead(mail: Buffer): string {
  const text = mail.subarray(0, MAX_HEADER_BYTES).toString('latin1')
  const end = /\r?\n\r?\n/.exec(text)?.index
  return text.slice(0, end).replace(/\r?\n[ \t]+/g, ' ')
}

/** The first value of a header, or null without it. @param name in lower case. */
function headerIn(head: string, name: string): string | null {
  for (const line of head.split('\n')) {
    const cut = line.indexOf(':')
    if (cut > 0 && line.slice(0, cut).trim().toLowerCase() === name) return line.slice(cut + 1).trim()
  }
  return null
}

/** Returns the bare address in a header's value. If there are several, the first. */
function bareAddress(value: string): string {
  const inner = /<([^<>]{0,320})>/.exec(value)?.[1]
  return (inner ?? value.split(/[\s,;]/).find((word) => word.includes('@')) ?? '').trim()
}

const localPart = (address: string): string =>
  address.slice(0, Math.max(0, address.lastIndexOf('@'))).toLowerCase()

/** The From header of a mail server may only have a local part. */
const BARE_DAEMON = /^"?(mailer-daemon|postmaster)"?$/i

const fromAddress = (value: string): string => {
  const daemon = BARE_DAEMON.exec(value.trim())?.[1]
  return daemon === undefined ? bareAddress(value) : `${daemon}@localhost`
}

export function readEnvelope(mail: Buffer): ReportEnvelope {
  const head = readHead(mail)
  const first = (...names: readonly string[]) =>
    names.map((name) => headerIn(head, name)).find((value) => value !== null && value !== '') ?? ''
  const recipient = bareAddress(first('delivered-to', 'x-original-to', 'to'))
  const returnPath = headerIn(head, 'return-path')
  return {
    to: localPart(recipient),
    recipient,
    sender: returnPath === null ? null : bareAddress(returnPath),
    from: fromAddress(headerIn(head, 'from') ?? ''),
  }
}

/** Addresses that anyone can write to: feedback loops, and those required by RFC 5321 §4.5.1 and RFC 2142. */
const SERVICES = ['fbl', 'postmaster', 'abuse'] as const
type ServiceAddress = (typeof SERVICES)[number]

export const serviceAddress = ({ to }: ReportEnvelope): ServiceAddress | null =>
  SERVICES.find((name) => name === to) ?? null

/** The raw subject of mail for the operator, to postmaster@ or abuse@. Null for other mail. */
export function operatorSubject(mail: Buffer): string | null {
  const service = serviceAddress(readEnvelope(mail))
  if (service !== 'postmaster' && service !== 'abuse') return null
  return headerIn(readHead(mail), 'subject') ?? ''
}

const DAEMONS: readonly string[] = ['mailer-daemon', 'postmaster']

/** True if mail comes from a mail server: it has an empty sender, or comes from a daemon. */
export const isFromServer = ({ sender, from }: ReportEnvelope): boolean =>
  sender === '' || [from, sender ?? ''].some((address) => DAEMONS.includes(localPart(address)))

/** True if the From address is a daemon's. */
export const isDaemon = ({ from }: ReportEnvelope): boolean => DAEMONS.includes(localPart(from))
