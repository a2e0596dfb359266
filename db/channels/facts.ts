/** The type of a channel's facts, which need no query (listed in list.ts). */

/** The quota of a plan, and its columns. */
export type Quota = {
  /** Its name in responses and CLI options. */
  name: string
  /** Its heading and its unit. */
  title: string
  noun: string
  /** The column of plans and subscriptions. */
  limit: string
  /** The column of allowances. */
  used: string
  /** The limits of each kind of plan without a value in the catalog. Null: no limit. */
  defaults: { free: number | null; paid: number | null; custom: number | null }
}

export type Facts = {
  name: string
  /** The display name of the channel. `noun` is that of one message. */
  title: string
  noun: string
  /** Where its pages are, below a team's. */
  path: string
  /** The API key scope for sending. */
  scope: string
  /** Its statuses, lowest first. */
  ladder: readonly string[]
  quota: Quota
  /** What webhooks report of its messages. */
  webhooks: readonly string[]
  /** Types of webhooks that aren't about a message. */
  webhooks_apart: readonly string[]
  /** Events that have another name in webhooks than in timelines. */
  webhook_names: Readonly<Record<string, string>>
  /** The providers that send its messages or report on them, as in their hooks (DECISIONS: Delivery reports). */
  providers: readonly string[]
  /** Their names, by ID. */
  provider_names: Readonly<Record<string, string>>
  /** Its lanes (db/queue/fair-queue.ts). Each has a column for a team's position. */
  lines: readonly string[]
}
