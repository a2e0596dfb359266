/**
 * What a channel's facts are: what is known of it without a statement (email.ts and its neighbours; listed in list.ts).
 * Must not know any one channel. Pure.
 */

/** What a plan allows of something, and where it is kept. */
export type Quota = {
  /** What figures in answers and options of the CLI are called. */
  name: string
  /** Its heading, and what is counted. */
  title: string
  noun: string
  /** The column of plans and subscriptions. */
  limit: string
  /** The column of allowances. */
  used: string
  /** What a plan of each kind allows where its catalog sets no figure; null: no limit. */
  defaults: { free: number | null; paid: number | null; custom: number | null }
}

export type Facts = {
  /** Its name in figures, metrics and rows. */
  name: string
  /** What a person calls the channel, and one message of it. */
  title: string
  noun: string
  /** Where its pages are, below a team's. */
  path: string
  /** What a key must be allowed to send by it. */
  scope: string
  /** Its statuses, lowest first. */
  ladder: readonly string[]
  /** What its messages are counted under in a team's allowance. */
  quota: Quota
  /** What webhooks report of its messages. */
  webhooks: readonly string[]
  /** Types of webhooks that are about no message. */
  webhooks_apart: readonly string[]
  /** The events that webhooks call otherwise than timelines do. */
  webhook_names: Readonly<Record<string, string>>
  /** Who sends its messages and reports on them, as their hooks name them (DECISIONS: Delivery reports). */
  providers: readonly string[]
  /** Its lines (db/queue/fair-queue.ts): each has a column of allowances for a team's place in it. */
  lines: readonly string[]
}
