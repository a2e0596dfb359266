/**
 * How a reported event finds its row: by our own ids that travelled with the message, or by the provider's id.
 * Pure.
 */
export type ReportedRef = { team_id: string; id: string } | { provider_message_id: string }
