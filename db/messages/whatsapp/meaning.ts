/** Explains Meta's error codes, and what helps against each error. */

/**
 * What helps against an error. `again` is another attempt, `recipient` another way to reach the recipient, `template`
 * a sync or a change of the template, `opt_out` the end of the recipient's opt-out, and `account` a change by the owner
 * of the WhatsApp account.
 */
export type Remedy = 'again' | 'recipient' | 'template' | 'opt_out' | 'account'

const FAILURES: Readonly<Record<string, readonly [meaning: string, remedy: Remedy]>> = {
  130429: ['The number sends faster than Meta allows. Sending slows down automatically.', 'again'],
  130472: [
    'Meta excludes this recipient as part of an experiment. A later message may get through.',
    'again',
  ],
  130497: ['Meta does not let this number send to that country.', 'account'],
  131026: ['The number may not be on WhatsApp, or the recipient’s app is too old.', 'recipient'],
  131031: ['Meta has locked the account. Check it in WhatsApp Manager.', 'account'],
  131042: ['The account at Meta has a payment problem. Messages wait until it is fixed.', 'account'],
  131047: [
    'The recipient has not written within 24 hours. Until they write to you, you can only send templates.',
    'recipient',
  ],
  131048: ['Too many recipients have blocked or reported the number. Sending pauses.', 'account'],
  131049: ['Meta limits marketing messages to each recipient. A later message may get through.', 'again'],
  131050: ['The recipient has stopped marketing messages from this business.', 'opt_out'],
  131056: [
    'Too many messages went to this recipient in a short time. A later attempt may get through.',
    'again',
  ],
  132000: ['The number of parameters does not match the template. Sync the templates.', 'template'],
  132001: ['Meta does not know the template in this language. Sync the templates.', 'template'],
  132005: ['The text is too long once its parameters are filled in.', 'template'],
  132007: ['The template breaks Meta’s rules for its format.', 'template'],
  132012: ['A parameter does not have the format that the template requires.', 'template'],
  132015: ['Meta has paused the template because of its low quality.', 'template'],
  132016: ['Meta has permanently disabled the template. Create a new one.', 'template'],
}

const failureOf = (code: string | null) =>
  code !== null && Object.hasOwn(FAILURES, code) ? FAILURES[code] : undefined

/** Returns the explanation of an error code, or null. */
export const meaningOf = (code: string | null): string | null => failureOf(code)?.[0] ?? null

/** Returns what helps against an error, or null if that is unknown. */
export const remedyFor = (code: string | null): Remedy | null => failureOf(code)?.[1] ?? null
