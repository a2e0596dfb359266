/** The verbs `cancel` and `reschedule` of the channels whose messages may wait for their time. */
import type { By } from '../accounts/audit/record.ts'
import { moment } from './input.ts'
import type { Noun } from './noun.ts'

type Acts = {
  /** Of one message, in words. */
  noun: string
  cancel(by: By, team: string, id: string): Promise<{ id: string }>
  move(by: By, team: string, id: string, time: string): Promise<{ id: string; scheduled_at: string }>
}

/** Adds the verbs. */
export function scheduledVerbs({ verb, change }: Noun, { noun, cancel, move }: Acts): void {
  verb(
    'cancel TEAM ID',
    `withdraw ${noun} that waits for its time; its place in the quota is free again`,
  ).action(
    change(async (by, team: string, id: string) => ({ ...(await cancel(by, team, id)), cancelled: true })),
  )
  verb('reschedule TEAM ID', `move ${noun} that waits for its time`)
    .requiredOption('--at <time>', 'when it goes, such as 2026-01-31T09:00:00Z', moment)
    .action(
      change((by, team: string, id: string, { at }: { at: Date }) => move(by, team, id, at.toISOString())),
    )
}
