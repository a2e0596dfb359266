/** Decides why a failed webhook message isn't attempted again. Pure. */

/** Statuses that reject the body itself. The message fails at the third one. */
export const BODY_REJECTED_STATUSES: readonly number[] = [400, 413, 422]
/** The status of a server that wants no more messages. Its endpoint is disabled. */
export const GONE_STATUS = 410
/** How long an endpoint may fail without a success before it is disabled, in milliseconds. */
export const DISABLE_AFTER_MS = 5 * 86_400_000

export type WebhookEnd = 'disabled' | 'gone' | 'rejected' | 'exhausted'

/**
 * @param status of the last attempt, or null without a response. @param isDisabled true if the endpoint was
 * disabled.
 */
export function findWebhookEnd(status: number | null, isDisabled: boolean): WebhookEnd {
  if (isDisabled) return 'disabled'
  if (status === GONE_STATUS) return 'gone'
  return status !== null && BODY_REJECTED_STATUSES.includes(status) ? 'rejected' : 'exhausted'
}
