/** Finds the recipient's domain and the status in a raw report. Pure. */

const RECIPIENTS: readonly RegExp[] = [
  /^(?:original|final)-recipient:[^\r\n@]{0,100}@([\w.-]{1,253})/im,
  /"(?:emailaddress|recipient|email)"\s?:\s?"[^"@]{0,100}@([\w.-]{1,253})/i,
  /^<[^<>@\s]{0,100}@([\w.-]{1,253})>:/m,
]
const STATUSES: readonly RegExp[] = [
  /^status:\s?([245]\.\d{1,3}\.\d{1,3})\b/im,
  /"(?:status|enhanced-code)"\s?:\s?"([245]\.\d{1,3}\.\d{1,3})"/i,
  /\b[245]\d\d[ -]([245]\.\d{1,3}\.\d{1,3})\b/,
  /"code"\s?:\s?"?(\d{1,9})\b/,
]
/** The outcome of a message to a phone number. */
const OUTCOME = /"status"\s?:\s?"([a-z_]{1,20})"/

/**
 * Returns the domain of the recipient or the outcome, and the status or error code, if the first bytes of a report
 * contain them. Null if they contain neither.
 */
export function summarizeReport(head: Buffer): string | null {
  // Amazon SNS escapes the JSON of a report in its own.
  const text = head.toString('utf8').replaceAll('\\"', '"')
  const find = (patterns: readonly RegExp[]): string =>
    patterns.map((pattern) => pattern.exec(text)?.[1]).find(Boolean) ?? ''
  return [find([...RECIPIENTS, OUTCOME]), find(STATUSES)].filter(Boolean).join(', ') || null
}
