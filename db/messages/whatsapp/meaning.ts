/** Explains the provider's error codes, with the action that each needs. Source: providers, WhatsApp errors. */

const MEANINGS: Readonly<Record<string, string>> = {
  130429: 'The number sends faster than the provider allows. Sending slows down automatically.',
  130472: 'The provider excludes this recipient as part of an experiment. A later message may get through.',
  130497: 'The provider does not let this number send to that country.',
  131026: 'The number may not be on WhatsApp, or its app is too old. Contact the recipient another way.',
  131031: 'The provider has locked the account. Check its business manager.',
  131042: 'The provider’s account has a payment problem. Messages wait until it is fixed.',
  131047:
    'The recipient has not written within 24 hours. Until they write to you, you can only send templates.',
  131048: 'Too many recipients have blocked or reported the number. Sending pauses.',
  131049: 'The provider limits marketing messages to each recipient. A later message may get through.',
  131050: 'The recipient has stopped marketing messages from this business.',
  131056: 'Too many messages went to this recipient in a short time. The message is retried automatically.',
  132000: 'The number of parameters does not match the template. Sync the templates.',
  132001: 'The provider does not know the template in this language. Sync the templates.',
  132005: 'The text is too long once its parameters are filled in.',
  132007: 'The template breaks the provider’s rules for its format.',
  132012: 'A parameter does not have the format that the template requires.',
  132015: 'The provider has paused the template because of its low quality.',
  132016: 'The provider has permanently disabled the template. Create a new one.',
}

/** Returns the explanation of an error code, or null. */
export const meaningOf = (code: string | null): string | null =>
  code !== null && Object.hasOwn(MEANINGS, code) ? (MEANINGS[code] ?? null) : null
