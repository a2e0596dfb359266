/** Describes why a broadcast was paused automatically, for members of the team. Pure. */
import { percent } from '../../percent.ts'
import type { Brake } from './broadcasts.sql.ts'

/** The reason and the next step, by the broadcast's `state_reason`. */
const REASONS: Readonly<Record<string, readonly [why: string, next: string]>> = {
  overdue: [
    'It would have started more than an hour late, so it was paused instead',
    'Resume it to send it now.',
  ],
  quota_exceeded: ['The quota is used up', 'Resume the broadcast when you have quota again.'],
  bounces: ['Too many of its emails bounced', 'Check the addresses before you resume it.'],
  complaints: ['Too many recipients reported it as spam', 'Check who receives it before you resume it.'],
  team_bounces: [
    'Too many emails of the team bounced in 24 hours',
    'An owner or operator can resume the team’s broadcasts and batches.',
  ],
  team_complaints: [
    'Too many emails of the team were reported as spam in 24 hours',
    'An owner or operator can resume the team’s broadcasts and batches.',
  ],
  restored: [
    'The database was restored from a backup, so more emails may have been sent than are recorded here',
    'Check the emails already sent before you resume the broadcast.',
  ],
  from_domain_not_verified: [
    'The domain of its From address isn’t verified',
    'Verify the domain before you resume the broadcast.',
  ],
  topic_gone: ['One of its topics was deleted', 'Duplicate the broadcast, and choose other topics.'],
  no_audience: [
    'Its audience was empty when it was due to start',
    'Resume it once contacts match its topics and conditions.',
  ],
}

/** Formats the rate that caused an auto-pause: `0.17 % of 1,761 emails, limit 0.10 %`. */
const figureWords = ({ left, count, limit }: Brake): string =>
  `${percent(count / left)} of ${left.toLocaleString('en-US')} emails, limit ${percent(limit / 100)}`

/**
 * @param brake the reason for the last auto-pause.
 * @param canResume false for users who can't. They only read who else can.
 */
export function pausedBecause(reason: string, brake: Brake | null, canResume = true): string {
  const [why, step] = REASONS[reason] ?? [reason, '']
  const next = canResume || reason.startsWith('team_') ? step : ''
  const isBraked = brake !== null && /(^|_)(bounces|complaints)$/.test(reason)
  return `${why}${isBraked ? `: ${figureWords(brake)}` : ''}. ${next}`.trim()
}
