/**
 * Reads SMTP_URL: smtp://user:password@host:port or smtps://…, with nodemailer's options as its query, which win over
 * ours: `?requireTLS=true&tls.rejectUnauthorized=false` (true and false in words: `=0` is not understood).
 * Pure. Must not repeat a URL in words for people: it holds a password.
 */

/** The URL of an SMTP server in parts; null when it is none. */
const parse = (url: string): URL | null => {
  const parsed = URL.canParse(url) ? new URL(url) : null
  return parsed !== null && /^smtps?:$/.test(parsed.protocol) && parsed.hostname !== '' ? parsed : null
}

export const isSmtpUrl = (url: string): boolean => parse(url) !== null

/**
 * The host with its port, and the password in the forms that a server might repeat to us; one too short to be told
 * from text is left alone. @throws Error when the URL is not one of an SMTP server.
 */
export function readSmtpUrl(url: string): { host: string; secrets: string[] } {
  const parsed = parse(url)
  if (parsed === null) throw new Error('SMTP_URL must be smtp://… or smtps://…')
  const user = decode(parsed.username)
  const password = decode(parsed.password)
  const base64 = (text: string): string => Buffer.from(text).toString('base64')
  const forms = [base64(`\0${user}\0${password}`), base64(password), parsed.password, password]
  const secrets = forms.filter((secret) => password.length >= 4 && secret.length >= 4)
  return { host: parsed.host, secrets }
}

const decode = (text: string): string => {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
