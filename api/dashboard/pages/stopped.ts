/** Alerts for things that stopped automatically, on pages of teams and operators. */

import { type BulkPause, pauseFigures } from '../../../db/accounts/teams/reputation.ts'
import { pausedSenders } from '../../../db/delivery/senders/senders.sql.ts'
import { listSenders, type ShownSender } from '../../../db/delivery/senders/show.ts'
import type { stoppedBroadcasts } from '../../../db/messages/broadcasts/auto-pause.sql.ts'
import { pausedBecause } from '../../../db/messages/broadcasts/paused-because.ts'
import type { Tx } from '../../../db/postgres/pool.ts'
import { time, timeLeft } from '../components/cell.ts'
import { keepPercents } from '../components/percent.ts'
import type { Alert } from '../components/section.ts'
import { BULK_NEXT } from '../components/timeline.ts'
import { teamPath } from '../server/page.ts'

/** More alerts of one kind are collapsed into one. */
const MAX_ALIKE = 3

/** Collapses similar alerts under one title if there are many. */
export const groupAlerts = (alerts: readonly Alert[], title: string): readonly Alert[] => {
  const [first] = alerts
  return first && alerts.length > MAX_ALIKE ? [{ tone: first.tone, title, folded: alerts }] : alerts
}

const MAX_SHOWN = 3

/** Puts bad alerts first, and collapses those beyond the first ones if there are at least two. */
export function foldAlerts(alerts: readonly Alert[]): Alert[] {
  const sorted = [...alerts].sort((one, other) => Number(other.tone === 'bad') - Number(one.tone === 'bad'))
  const rest = sorted.slice(MAX_SHOWN).flatMap((alert) => alert.folded ?? [alert])
  const [first] = rest
  if (!first || sorted.length === MAX_SHOWN + 1) return sorted
  return [...sorted.slice(0, MAX_SHOWN), { tone: first.tone, title: `${rest.length} more`, folded: rest }]
}

export const isPaused = ({ state }: ShownSender): boolean => state === 'paused' || state === 'probing'

/** Returns the shown state of a sender. */
export const senderState = ({ state }: ShownSender): string => (state === 'probing' ? 'testing' : state)

/** Returns a team's senders, without paused numbers of other teams. */
export async function loadSenders(team: { id: string }, tx: Tx): Promise<ShownSender[]> {
  const own = new Set((await pausedSenders(tx, { team: team.id })).map(({ sender }) => sender))
  const senders = await listSenders(tx)
  return senders.filter(({ key, name, state }) => name === null || state !== 'paused' || own.has(key))
}

/** Returns a sender's name in a sentence. A number has its own name. */
export const senderName = ({ key, name }: Pick<ShownSender, 'key' | 'name'>): string =>
  name === null ? key : `the ${name === 'default' ? 'default number' : `number ${name}`}`

/** Builds alerts for paused senders, for operators. A pause ends at its time or with a test attempt. */
export const goesOutAlerts = (senders: readonly ShownSender[], now: Date): Alert[] =>
  senders
    .filter(isPaused)
    .map(({ key, name, paused_until, reason }) => ({
      tone: 'bad',
      title: `Nothing goes out through ${senderName({ key, name })} for ${paused_until ? `another ${timeLeft(paused_until, now)}` : 'now. A test attempt is in progress'}`,
      text: reason ?? 'No reason given.',
      link: { href: '/operator/senders', label: 'Show senders' },
    }))

export const RESUME_BULK = 'Resume broadcasts and batches'

/** Builds the alert for paused bulk email of a team, with the reason. */
export const bulkPausedAlert = ({ since, pause }: { since: string; pause: BulkPause }, now: Date): Alert => ({
  tone: 'bad',
  title: 'Broadcasts and batches of the team have been paused since',
  at: time(since, now),
  text: `${keepPercents(pauseFigures(pause))}. ${BULK_NEXT}`,
})

/** The longest name in an alert, which then has two lines. In characters. */
const MAX_NAME = 50

const cutName = (name: string): string =>
  name.length > MAX_NAME ? `${name.slice(0, MAX_NAME - 1).trimEnd()}…` : name

/**
 * Builds alerts for broadcasts that were paused automatically, with the reason.
 * @param options.ofTeams true to include the team.
 * @param options.canResume false for members who can't resume them.
 */
export const stoppedBroadcastAlerts = (
  stopped: Awaited<ReturnType<typeof stoppedBroadcasts>>,
  { ofTeams = false, canResume = true } = {},
): Alert[] =>
  stopped.map(({ team_id, team, id, name, state_reason, brake }) => ({
    tone: 'bad',
    title: `“${cutName(name)}” was paused automatically`,
    text: `${ofTeams ? `${team}: ` : ''}${keepPercents(pausedBecause(state_reason, brake, canResume))}`,
    link: { href: teamPath({ id: team_id }, 'broadcasts', id), label: 'Show broadcast' },
  }))
