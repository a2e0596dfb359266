/**
 * Keeps the daily figures up: today and yesterday every time, the week before once an hour, since reports come late.
 * Promises: each day is a statement of its own, so that none runs for long.
 */
import { CHANNELS } from '../channels/channels.sql.ts'
import type { Tx } from '../postgres/pool.ts'
import { countDay } from './figures.sql.ts'

const DAY = 86_400_000

/** The first moment of the UTC day so many days ago. */
export const dayBefore = (now: Date, days: number): Date =>
  new Date(Math.floor(now.getTime() / DAY) * DAY - days * DAY)

/** @param days how many, today included. */
export async function countFigures(tx: Tx, now: Date, days: number): Promise<void> {
  for (let ago = 0; ago < days; ago++) {
    for (const channel of CHANNELS) await countDay(tx, channel, dayBefore(now, ago))
  }
}
