/**
 * Checks the bounces and complaints of each team over the last 24 hours. Warns the owners, or pauses broadcasts and
 * batch items until a manual resume. Single emails are still sent. DECISIONS: Reputation of a team.
 */
import { type By, record } from '../accounts/audit/record.ts'
import { readBulkPause, setBulkPaused, setBulkResumed, setWarned } from '../accounts/teams/reputation.sql.ts'
import {
  type BulkPause,
  describeRates,
  judgeSending,
  percentOf,
  type ReputationLimits,
} from '../accounts/teams/reputation.ts'
import { requireTeam, showTeam } from '../accounts/teams/view.ts'
import { EMAIL } from '../channels/email.sql.ts'
import { publish } from '../channels/events/webhooks.ts'
import type { Database, Tx } from '../postgres/pool.ts'
import { serviceTime } from '../postgres/time.sql.ts'
import { idNow } from '../process/ids.ts'
import { bringForward } from '../queue/jobs.sql.ts'
import type { Producer } from '../queue/producer.ts'
import { wakeOnCommit } from '../queue/wake.ts'
import { type SendingOfTeam, sendingOfLastDay } from '../stats/daily/sending.sql.ts'
import { lockBulkPaused, lockSendingBroadcasts } from './broadcasts/broadcasts.sql.ts'
import { goOn, pauseForTeam } from './broadcasts/team-pause.ts'
import { waitingBatchItems } from './emails/waiting.sql.ts'

type Acting = { tx: Tx; queue: Pick<Producer, 'enqueue'> }

/** Notifies the team's webhooks and owners. */
async function announce(
  { tx, queue }: Acting,
  sending: SendingOfTeam,
  { paused, now }: { paused: boolean; now: Date },
): Promise<void> {
  const { team_id, sent, hard_bounced, complained } = sending
  const about = {
    bounce_percent: percentOf(hard_bounced, sent),
    complaint_percent: percentOf(complained, sent),
    ...{ sent, paused },
  }
  const what = { team_id, id: team_id, kind: 'reputation', occurred_at: now, detail: '', about } as const
  await publish(tx, [{ subject: 'team', ...what }])
  const notice = paused ? 'paused' : describeRates(sending)
  await queue.enqueue(tx, 'mail-owners', [{ team_id, reputation: notice, notice_id: idNow() }])
}

async function pauseBulk(acting: Acting, sending: SendingOfTeam, pause: BulkPause): Promise<void> {
  const { tx } = acting
  const now = await serviceTime(tx)
  const broadcasts = await lockSendingBroadcasts(tx, sending.team_id)
  if (!(await setBulkPaused(tx, sending.team_id, pause))) return
  for (const row of broadcasts) await pauseForTeam(tx, row, pause, now)
  await announce(acting, sending, { paused: true, now })
}

async function warn(acting: Acting, sending: SendingOfTeam): Promise<void> {
  if (!(await setWarned(acting.tx, sending.team_id))) return
  await announce(acting, sending, { paused: false, now: await serviceTime(acting.tx) })
}

/** Checks every team, each in its own transaction. */
export async function judgeTeams(
  { database, queue }: { database: Database; queue: Acting['queue'] },
  limits: ReputationLimits,
): Promise<void> {
  for (const sending of await sendingOfLastDay(database, limits.least_emails)) {
    const judged = judgeSending(sending, limits)
    if (judged === null) continue
    await database.transaction((tx) =>
      judged === 'warning' ? warn({ tx, queue }, sending) : pauseBulk({ tx, queue }, sending, judged),
    )
  }
}

/**
 * Resumes a team's broadcasts and batch items that were paused for its reputation, and starts a new count. @throws
 * RequestError not_found.
 */
export async function resumeBulk(by: By & { queue: Pick<Producer, 'reenqueue'> }, teamId: string) {
  const { tx, now } = by
  const { name } = await requireTeam(tx, teamId)
  const broadcasts = await lockBulkPaused(tx, teamId)
  const before = await readBulkPause(tx, teamId)
  if (await setBulkResumed(tx, teamId)) {
    await bringForward(tx, EMAIL.job, waitingBatchItems(teamId))
    await wakeOnCommit(tx, EMAIL.job)
    const detail = before?.pause.reason ?? ''
    await record(by, { team_id: teamId, action: 'team.resume_bulk', subject: name, detail })
  }
  for (const row of broadcasts) await goOn(by, row, now)
  return showTeam(tx, teamId)
}
