/** What stopped by itself, as alerts: on the first page of its team, and for operators on the page of health. Pure. */
import { type BulkPause, pauseFigures } from '../../../db/accounts/teams/reputation.ts'
import type { ShownSender } from '../../../db/delivery/senders/show.ts'
import type { stoppedBroadcasts } from '../../../db/messages/broadcasts/auto-pause.sql.ts'
import { pausedBecause } from '../../../db/messages/broadcasts/paused-because.ts'
import { time } from '../components/cell.ts'
import type { Alert } from '../components/section.ts'
import { BULK_NEXT } from '../components/timeline.ts'
import { teamPath } from '../server/page.ts'

/** More alerts of one kind than this are folded into one. */
const MAX_ALIKE = 3

/** Several alerts of one kind behind one title. */
export const groupAlerts = (alerts: readonly Alert[], title: string): readonly Alert[] => {
  const [first] = alerts
  return first && alerts.length > MAX_ALIKE ? [{ tone: first.tone, title, folded: alerts }] : alerts
}

/** Whether a sender takes nothing: between two probes, or while the next one is on its way. */
export const isPaused = ({ state }: ShownSender): boolean => state === 'paused' || state === 'probing'

/** Senders that take nothing, with the provider's words. @param shown what a page says of one besides. */
export const pausedSenderAlerts = (
  senders: readonly ShownSender[],
  shown: (sender: ShownSender) => Omit<Alert, 'text'>,
): Alert[] =>
  senders
    .filter(isPaused)
    .map((sender) => ({ ...shown(sender), text: sender.reason ?? 'It gave no reason.' }))

/** The label of the button that resumes a team's bulk email. */
export const RESUME_BULK = 'Resume broadcasts and batches'

/** Bulk email of a team that is paused: why, by how much, since when and until when. */
export const bulkPausedAlert = ({ since, pause }: { since: string; pause: BulkPause }, now: Date): Alert => ({
  tone: 'bad',
  title: 'Broadcasts and batches of the team are paused since',
  at: time(since, now),
  text: `${pauseFigures(pause)}. ${BULK_NEXT}`,
})

/** Broadcasts that paused themselves, with why. @param ofTeams whether each says whose it is. */
export const stoppedBroadcastAlerts = (
  stopped: Awaited<ReturnType<typeof stoppedBroadcasts>>,
  ofTeams = false,
): Alert[] =>
  stopped.map(({ team_id, team, id, name, state_reason, brake }) => ({
    tone: 'bad',
    title: `The broadcast “${name}”${ofTeams ? ` of ${team}` : ''} has paused itself`,
    text: pausedBecause(state_reason, brake),
    link: { href: teamPath({ id: team_id }, 'broadcasts', id), label: 'Open the broadcast' },
  }))
