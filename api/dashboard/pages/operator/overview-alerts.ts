/** Alerts of the operator's overview: paused senders with their waiting messages, and teams with high rates. */
import type { ShownSender } from '../../../../db/delivery/senders/show.ts'
import type { Tx } from '../../../../db/postgres/pool.ts'
import { teamsOverLimits } from '../../../../db/stats/daily/sending.sql.ts'
import { percent } from '../../components/percent.ts'
import type { Alert } from '../../components/section.ts'
import { ALARMING_SHARE, MIN_SENT_FOR_SHARES } from '../../components/shares.ts'
import { compact } from '../../server/builders.ts'
import { goesOutAlerts, isPaused } from '../stopped.ts'
import { type PauseEffects, withEffect } from './pause-effects.ts'
import { pageOfTeam } from './team-plan.ts'

/** Maximum number of listed teams above the limits of mailbox providers. */
const MAX_TEAMS = 20

/** Returns alerts for paused senders with their waiting messages. Without any, it is only a warning. */
export const pauseAlerts = (senders: readonly ShownSender[], effects: PauseEffects, now: Date): Alert[] =>
  senders.filter(isPaused).flatMap((sender) => {
    const effect = effects.get(sender.name ?? sender.key)
    return goesOutAlerts([sender], now).map((alert) => ({
      ...alert,
      tone: effect?.tone ?? alert.tone,
      text: withEffect(alert.text ?? '', effect),
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
