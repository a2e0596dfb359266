/** Why a broadcast is paused when no person did it, in words for the team's people. Pure. */
import type { Brake } from './broadcasts.sql.ts'

/** What happened, and what to do about it, by the broadcast's `state_reason`. */
const REASONS: Readonly<Record<string, readonly [why: string, next: string]>> = {
  overdue: ['Its time had passed by more than an hour, so it did not begin by itself', ''],
  quota_exceeded: ['The quota is used up', 'It goes on from where it is once there is room.'],
  bounces: ['Too many of its emails bounced', 'Look at the addresses before it goes on.'],
  complaints: ['Too many people complained', 'Look at whom it goes to before it goes on.'],
  team_bounces: [
    'Too many emails of the team bounced in 24 hours',
    'An owner or operator resumes all bulk email of the team.',
  ],
  team_complaints: [
    'Too many emails of the team were reported as spam in 24 hours',
    'An owner or operator resumes all bulk email of the team.',
  ],
  restored: ['The database was restored from a backup: it may have sent more than is known here', ''],
  from_domain_not_verified: ['The domain of its From address is not verified', ''],
  topic_gone: ['A topic that it names was deleted', ''],
  no_audience: ['Nobody was in its audience when it was to begin', ''],
}

/** What braked it: `0.17 % of 1,761 emails, limit 0.10 %`. */
const figureWords = ({ left, count, limit }: Brake): string =>
  `${((count * 100) / left).toFixed(2)} % of ${left.toLocaleString('en-US')} emails, limit ${limit.toFixed(2)} %`

/** @param brake what it was braked for last. */
export function pausedBecause(reason: string, brake: Brake | null): string {
  const [why, next] = REASONS[reason] ?? [reason, '']
  const isBraked = brake !== null && /(^|_)(bounces|complaints)$/.test(reason)
  return `${why}${isBraked ? `: ${figureWords(brake)}` : ''}. ${next}`.trim()
}
