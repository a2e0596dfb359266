/** Alerts of the operator's overview: paused senders with their waiting messages, and teams with high rates. */
import { unusedNumbers } from '../../../../db/delivery/senders/senders.sql.ts'
import type { ShownSender } from '../../../../db/delivery/senders/show.ts'
import type { Tx } from '../../../../db/postgres/pool.ts'
import { teamsOverLimits } from '../../../../db/stats/daily/sending.sql.ts'
import { percent } from '../../components/percent.ts'
import type { Alert } from '../../components/section.ts'
import { ALARMING_SHARE, MIN_SENT_FOR_SHARES } from '../../components/shares.ts'
import { compact } from '../../server/builders.ts'
import { goesOutAlerts, isPaused } from '../stopped.ts'
import { countWaiting, NOTHING_WAITS } from './senders.ts'
import { pageOfTeam } from './team-plan.ts'

/** Maximum number of listed teams above the limits of mailbox providers. */
const MAX_TEAMS = 20

type Effects = {
  /** The messages that wait for each paused sender, by key. */
  waits: ReadonlyMap<string, string>
  /** The names of numbers that no team uses. */
  unused: readonly string[]
  /** The number of paused senders, except unused ones without waiting messages. */
  stopping: number
}

/** Returns what paused senders stop. */
export async function pauseEffects(tx: Tx, senders: readonly ShownSender[]): Promise<Effects> {
  const waits = await countWaiting(tx, senders)
  const unused = await unusedNumbers(tx)
  const isUnused = ({ key, name }: ShownSender): boolean =>
    waits.get(key) === NOTHING_WAITS && unused.includes(name ?? '')
  const stopping = senders.filter((sender) => isPaused(sender) && !isUnused(sender)).length
  return { waits, unused, stopping }
}

/** Returns alerts for paused senders with their waiting messages. Without any, it is only a warning. */
export const pauseAlerts = (
  senders: readonly ShownSender[],
  { waits, unused }: Pick<Effects, 'waits' | 'unused'>,
  now: Date,
): Alert[] =>
  senders.filter(isPaused).flatMap((sender) => {
    const waiting = waits.get(sender.key) ?? NOTHING_WAITS
    const idle = unused.includes(sender.name ?? '') ? 'No team uses the number.' : 'No messages wait.'
    return goesOutAlerts([sender], now).map((alert) => ({
      ...alert,
      tone: waiting === NOTHING_WAITS ? 'warn' : 'bad',
      text: `${alert.text?.replace(/\.?$/, '.')} ${waiting === NOTHING_WAITS ? idle : `Waiting: ${waiting}.`}`,
    }))
  })

/** Returns alerts for teams whose rates are above the limits of mailbox providers. */
export async function reputationAlerts(tx: Tx): Promise<Alert[]> {
  const over = await teamsOverLimits(tx, { ...ALARMING_SHARE, least: MIN_SENT_FOR_SHARES, most: MAX_TEAMS })
  return over.map(({ team_id, name, sent, hard_bounced, complained }) => {
    const rates = compact<string>([
      hard_bounced / sent > ALARMING_SHARE.bounced &&
        `${percent(hard_bounced / sent)} hard bounces, limit ${percent(ALARMING_SHARE.bounced)}`,
      complained / sent > ALARMING_SHARE.complained &&
        `${percent(complained / sent)} complaints, limit ${percent(ALARMING_SHARE.complained)}`,
    ])
    return {
      tone: 'bad',
      title: `Mailbox providers may block the team ${name}`,
      text: `In the last 7 days: ${rates.join('. ')}.`,
      link: { href: pageOfTeam(team_id), label: 'Show team' },
    }
  })
}
