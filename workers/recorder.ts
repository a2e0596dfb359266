/**
 * Records what a channel's sends have brought: rows, timelines, jobs and senders, in one transaction for many sends.
 * Promises: keeps trying for as long as the database is away, with short waits for locks. A record that cannot be
 * stored holds up no other, and its message is not sent again. It knows when it is stuck: then no send may begin.
 */
import type { DeliveryJob } from '../db/channels/channels.sql.ts'
import { gaveUpNote } from '../db/delivery/requeue.ts'
import { storeEvents } from '../db/happenings/store-events.ts'
import type { Tx } from '../db/postgres/pool.ts'
import { limitWaits } from '../db/postgres/waits.sql.ts'
import type { Claims, FetchedJob } from '../db/queue/claims.ts'
import type { End } from '../db/queue/jobs.ts'
import { pauseSender, type Sender, slowSender } from '../db/senders/pace.ts'
import { noteRecovery, noteTrouble, pauseAfter } from '../db/senders/trouble.ts'
import { storableWords } from '../db/text/words.ts'
import type { DeliveryChannel, Outgoing } from './delivery-channel.ts'
import type { WorkerDeps } from './deps.ts'
import { insist } from './insist.ts'
import type { Finding } from './sender-watch.ts'
import type { Judged } from './verdict.ts'

/** A job and its end; `sent` when the provider was asked. */
export type Recording<J extends DeliveryJob, A> = {
  job: FetchedJob<J>
  end: End
  sent?: { outgoing: Outgoing<A>; answer: A; at: Date; finding: Finding | null }
}

export type Recorder<J extends DeliveryJob, A> = {
  /** Stores recordings together, or one by one. Never throws. */
  write(recordings: readonly Recording<J, A>[]): Promise<void>
  isStuck(): boolean
  /** For how many seconds a message that this finding is about is of no use, as far as we know. */
  restAfter(finding: Finding | null): number
}

/** Milliseconds. A lock that is held for longer is tried again: the wait must not use up the connection. */
const WAITS = { lock: 2_000, statement: 10_000 }

/** A pause may be lifted early, so a message looks again after this at the latest. In seconds. */
const LONGEST_REST = 31

/** How many ids a line names. */
const NAMED = 5

const few = (values: readonly (string | null)[]): string[] =>
  [...new Set(values.filter((value) => value !== null))].slice(0, NAMED)

const withoutPerson = (word: string): string =>
  word.includes('@') ? '…' : word.replaceAll(/\+?\d{8,}/g, '…')

/** What was said most often, without the addresses and numbers in it; undefined when nothing was refused or put off. */
function commonReason(judged: readonly Judged[]): string | undefined {
  const words = judged
    .filter(({ kind }) => kind !== 'accepted')
    .map(({ detail }) => detail.replaceAll(/[^\s<>]+/g, withoutPerson))
  const counts = [...Map.groupBy(words, (each) => each)].sort((one, other) => other[1].length - one[1].length)
  return counts[0]?.[0]
}

/** One line for what was recorded together: what became of how many, and the first ids to trace it by. */
function tellOf<J extends DeliveryJob, A>(
  recordings: readonly Recording<J, A>[],
  { outcomesOf }: DeliveryChannel<J, A>,
  log: WorkerDeps['log'],
): void {
  const sent = recordings.flatMap((recording) => recording.sent ?? [])
  if (sent.length === 0) return
  const judged = sent.flatMap(({ answer }) => outcomesOf(answer))
  const kinds = Map.groupBy(judged, ({ kind }) => kind)
  log.info(
    {
      messages: sent.length,
      ...Object.fromEntries([...kinds].map(([kind, own]) => [kind, own.length])),
      reason: commonReason(judged),
      ids: few(sent.map(({ outgoing }) => outgoing.ref.id)),
      request_ids: few(sent.map(({ outgoing }) => outgoing.http_request_id)),
    },
    'sent',
  )
}

export function createRecorder<J extends DeliveryJob, A>(
  delivery: DeliveryChannel<J, A>,
  claims: Claims<J>,
  { database, log }: Pick<WorkerDeps, 'database' | 'log'>,
): Recorder<J, A> {
  const { channel } = delivery
  let stuck = false
  let troubles = 0

  async function store(tx: Tx, recordings: readonly Recording<J, A>[]): Promise<void> {
    await limitWaits(tx, WAITS)
    const sent = recordings.flatMap(({ end, sent: one }) => (one ? [{ ...one, end }] : []))
    if (sent.length > 0) await delivery.record(tx, sent)
    const given_up = sent.flatMap(({ end, outgoing, at }) =>
      end.end === 'given_up' ? [gaveUpNote({ ...outgoing.ref, since: outgoing.since }, end.reason, at)] : [],
    )
    if (given_up.length > 0) await storeEvents(tx, channel, given_up)
    await claims.settle(tx, new Map(recordings.map(({ job, end }) => [job, end])))
    const findings = sent.flatMap(({ finding }) => finding ?? [])
    if (findings.length > 0) await applyFindings(tx, await delivery.sender(), findings)
  }

  /** Last in its transaction: sends wait for the sender's row. */
  async function applyFindings(tx: Tx, sender: Sender, findings: readonly Finding[]): Promise<void> {
    const newest = (kind: Finding['kind']) =>
      findings
        .filter((finding) => finding.kind === kind)
        .sort((one, other) => other.began_at.getTime() - one.began_at.getTime())[0]
    const slow = newest('slow')
    if (slow?.kind === 'slow') await slowDown(tx, sender, slow)
    for (const kind of ['setup', 'connection'] as const) {
      const trouble = newest(kind)
      if (trouble?.kind !== kind) continue
      const seconds = await noteTrouble(tx, sender, { ...trouble, kind })
      if (seconds === null) continue
      troubles += 1
      log.error({ sender: sender.key, seconds, words: trouble.words }, 'nothing can be sent for now')
    }
    const accepted = newest('accepted')
    if (accepted === undefined || !(await noteRecovery(tx, sender, accepted.began_at))) return
    troubles = 0
    log.warn({ sender: sender.key }, 'messages are taken again')
  }

  async function slowDown(
    tx: Tx,
    sender: Sender,
    { words, wait_seconds, began_at }: Exclude<Finding, { kind: 'accepted' }>,
  ): Promise<void> {
    log.warn({ sender: sender.key, words, wait_seconds }, 'the provider asks to slow down')
    if (wait_seconds === undefined) await slowSender(tx, sender, began_at, words)
    else await pauseSender(tx, sender, wait_seconds, words)
  }

  const commit = (recordings: readonly Recording<J, A>[]) =>
    insist(
      () => database.transaction((tx) => store(tx, recordings)),
      log,
      () => {
        stuck = true
      },
    )

  /** What cannot be stored must not be sent again either: its job is given up. */
  async function abandon({ job }: Recording<J, A>, error: unknown): Promise<void> {
    log.error({ err: error, id: job.id }, 'what became of this message cannot be recorded')
    const said = error instanceof Error ? error.message : String(error)
    const end: End = {
      end: 'given_up',
      reason: storableWords(`it was tried, but what became of it cannot be recorded: ${said}`),
    }
    await commit([{ job, end }]).catch((fault: unknown) => {
      log.error({ err: fault, id: job.id }, 'nor can its job be given up')
    })
  }

  return {
    async write(recordings) {
      try {
        await commit(recordings)
        tellOf(recordings, delivery, log)
      } catch (error) {
        const [only, ...others] = recordings
        if (only && others.length === 0) await abandon(only, error)
        else for (const each of recordings) await commit([each]).catch((fault) => abandon(each, fault))
      } finally {
        stuck = false
        claims.release(recordings.map(({ job }) => job))
      }
    },
    isStuck: () => stuck,
    restAfter(finding) {
      if (finding === null || finding.kind === 'accepted' || finding.kind === 'slow') return 1
      // A little longer than the pause, so that another message is the next probe.
      return Math.min(LONGEST_REST, (finding.wait_seconds ?? pauseAfter(finding.kind, troubles + 1)) + 1)
    },
  }
}
