/** The provider's fault codes in plain words, with what a person can do. Pure. Source: providers, WhatsApp errors. */

const MEANINGS: Readonly<Record<string, string>> = {
  130429: 'The number sends faster than the provider allows. It slows down by itself.',
  130472:
    'The provider leaves this recipient out for an experiment of its own. A later message may get through.',
  130497: 'The provider does not let this number send to that country.',
  131026: 'The number may not be on WhatsApp, or its app is too old. Ask the recipient another way.',
  131031: 'The provider has locked the account. Look into its business manager.',
  131042: 'The provider’s account has a payment problem. Messages wait until it is solved.',
  131047: 'The recipient has not written within 24 hours, so that only templates may be sent.',
  131048: 'Too many recipients have blocked or reported the number. Sending pauses.',
  131049: 'The provider limits marketing messages to each recipient. A later message may get through.',
  131050: 'The recipient has stopped marketing messages from this business.',
  131056: 'Too many messages to this one recipient in a short time. It is tried again by itself.',
  132000: 'The template takes another number of parameters. Sync the templates.',
  132001: 'The provider does not know the template in this language. Sync the templates.',
  132005: 'The text is too long once its parameters are filled in.',
  132007: 'The template breaks the provider’s rules for its format.',
  132012: 'A parameter does not have the form that the template asks for.',
  132015: 'The provider has paused the template because of its low quality.',
  132016: 'The provider has disabled the template for good. Make a new one.',
}

/** What a fault code of the provider's means; null without one, or when it is not known. */
export const meaningOf = (code: string | null): string | null =>
  code !== null && Object.hasOwn(MEANINGS, code) ? (MEANINGS[code] ?? null) : null
