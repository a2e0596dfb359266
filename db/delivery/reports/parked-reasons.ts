/** Reasons of parked reports that a page explains. They are stored and compared, so they never change. */
export const PARKED_REASONS = {
  noMessage: 'no such message',
  noReference: 'it has no signed reference to one of our emails',
} as const

/** The same reasons as version 0.1.0 stored them. */
export const FORMER_REASONS: ReadonlyMap<string | null, string> = new Map([
  ['there is no such message', PARKED_REASONS.noMessage],
  ['it carries no return address of ours', PARKED_REASONS.noReference],
])
