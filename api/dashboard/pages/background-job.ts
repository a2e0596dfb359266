/** Describes background jobs. Redirects after starting one: to its progress, or with the result if it has finished. */
import type { Deliverable } from '../../../db/channels/channel.sql.ts'
import { CHANNELS } from '../../../db/channels/channels.sql.ts'
import { EMAIL } from '../../../db/channels/email.sql.ts'
import type { BackgroundJobRow } from '../../../db/maintenance/background-jobs/background-jobs.sql.ts'
import { plural } from '../../../db/plural.ts'
import { actorName } from '../components/action-labels.ts'
import { duration, text, time } from '../components/cell.ts'
import type { Link } from '../components/section.ts'
import { compact } from '../server/builders.ts'
import { type Notice, type PageAnswer, redirect, teamPath } from '../server/page.ts'

type Job = Pick<BackgroundJobRow, 'id' | 'team_id' | 'kind' | 'result'>

type JobTexts = {
  title: string
  /** One item, if it has a name. */
  noun?: string
  /** Its effect on each item. */
  verb: string
  outcome: (result: Record<string, unknown>) => string
  /** The label of the link to the result, and its path in the team. */
  shown?: (job: Job) => readonly [label: string, ...path: string[]]
  /** What happens to an item before the job ends. */
  meanwhile?: string
  unstoppable?: string
}

const requeueWords = ({ noun }: Pick<Deliverable, 'noun'>, list: string): JobTexts => ({
  title: `Send ${noun}s again`,
  noun,
  verb: 'Checked',
  meanwhile: `Each ${noun} that can be sent again is queued when it is checked.`,
  outcome: ({ changed }) => `${plural(Number(changed ?? 0), noun)} queued to be sent again.`,
  shown: () => [`Show ${noun}s`, list],
})

const WEBHOOKS = 'webhooks'

const DELETE_WORDS: JobTexts = {
  title: 'Delete emails',
  noun: 'email',
  verb: 'Checked',
  outcome: ({ changed }) => `${plural(Number(changed ?? 0), 'email')} deleted.`,
  shown: () => ['Show emails', EMAIL.path],
}

export const describeReview = ({
  bounce,
  soft_bounces,
  complaint,
  manual,
}: Record<string, unknown>): string =>
  `Hard bounces: ${Number(bounce ?? 0)}, soft bounces: ${Number(soft_bounces ?? 0)}, complaints: ${Number(complaint ?? 0)}, manual: ${Number(manual ?? 0)}.`

/** @param others the effect on the records that aren't rejected. */
const importWords = (title: string, others: string): JobTexts => ({
  title,
  noun: 'record',
  verb: 'Imported',
  outcome({ refused }) {
    const rejected = Number(refused ?? 0)
    return rejected === 0
      ? `All records ${others}.`
      : `${plural(rejected, 'record')} rejected. All others ${others}.`
  },
  shown: ({ id }) => ['Show import', 'contacts', 'imports', id],
  unstoppable: 'An import can’t be stopped, because that would leave half of the file imported.',
})

const WORDS: Readonly<Record<string, JobTexts>> = {
  'contact.import': importWords('Import contacts', 'were imported'),
  'suppression.import': importWords('Import suppressions', 'are suppressed'),
  'suppression.lift': {
    title: 'Lift suppressions',
    verb: 'Checked',
    outcome: ({ lifted }) => `${plural(Number(lifted ?? 0), 'suppression')} lifted.`,
    shown: () => ['Show suppressions', 'suppressions'],
  },
  'suppression.judge': {
    title: 'Re-evaluate suppressions',
    verb: 'Checked',
    outcome: (result) => describeReview(result),
    unstoppable: 'It is part of the upgrade to this version, so it can’t be stopped.',
  },
  'contact.erase': {
    title: 'Erase personal data',
    verb: 'Checked',
    outcome: ({ emails, waiting_emails_deleted, reports }) =>
      `${plural(Number(emails ?? 0), 'email')} redacted, ${plural(Number(waiting_emails_deleted ?? 0), 'waiting email')} deleted, ${plural(Number(reports ?? 0), 'report')} deleted.`,
    unstoppable: 'An erasure can’t be stopped, because some personal data would remain.',
  },
  ...Object.fromEntries(CHANNELS.map((each) => [`${each.name}.requeue`, requeueWords(each, each.path)])),
  'webhook.requeue': requeueWords({ noun: 'webhook event' }, WEBHOOKS),
  'webhook.requeue_matching': requeueWords({ noun: 'webhook event' }, WEBHOOKS),
  'email.requeue_apart': requeueWords(EMAIL, EMAIL.path),
  'email.delete': DELETE_WORDS,
  'email.delete_apart': DELETE_WORDS,
  'queue.redrive': {
    title: 'Retry failed jobs',
    noun: 'job',
    verb: 'Requeued',
    outcome: ({ redriven }) => `${plural(Number(redriven ?? 0), 'job')} will be retried.`,
  },
  'webhook.replay': {
    title: 'Send past webhook events again',
    noun: 'event',
    verb: 'Queued again',
    outcome: ({ replayed }) => `${plural(Number(replayed ?? 0), 'webhook event')} queued to be sent again.`,
    shown: () => ['Show webhooks', WEBHOOKS],
  },
  'report.purge': {
    title: 'Redact stored reports',
    verb: 'Checked',
    outcome: ({ changed }) => `${plural(Number(changed ?? 0), 'stored report')} redacted or deleted.`,
    unstoppable: 'It removes personal data, so it can’t be stopped.',
  },
}

/** Returns the texts of a job. An unknown kind is shown by its name. */
export const findJobTexts = ({ kind }: Pick<BackgroundJobRow, 'kind'>): JobTexts =>
  WORDS[kind] ?? { title: kind, verb: 'Done', outcome: () => '' }

/** Describes a running job, and why it can't be stopped. */
export function describeRun(job: Pick<BackgroundJobRow, 'kind'>): string {
  const { meanwhile, unstoppable } = findJobTexts(job)
  return compact<string>([
    meanwhile,
    'Workers do this in batches, so you can leave the page.',
    unstoppable,
  ]).join(' ')
}

/** Returns who started a job, its times and its ID, as facts. */
export const describeStart = ({ id, begun_by, begun_at, finished_at }: BackgroundJobRow, now: Date) => ({
  'Started by': text(actorName(begun_by)),
  Started: time(begun_at, now),
  Ended: finished_at !== null && time(finished_at, now),
  Took: finished_at !== null && text(duration((Date.parse(finished_at) - Date.parse(begun_at)) / 1_000)),
  ID: text(id, { code: true, copy: true }),
})

export function resultLink(job: Job): Link | undefined {
  const shown = findJobTexts(job).shown?.(job)
  if (shown === undefined)
    return job.kind === 'queue.redrive' ? { href: '/operator/queues', label: 'Show queues' } : undefined
  const [label, ...path] = shown
  return job.team_id === null ? undefined : { href: teamPath({ id: job.team_id }, ...path), label }
}

export const backgroundJobPath = ({ team_id, id }: Pick<BackgroundJobRow, 'team_id' | 'id'>): string =>
  team_id === null ? `/operator/background-jobs/${id}` : teamPath({ id: team_id }, 'background-jobs', id)

/** Returns the response after starting a job. @param path the target if the job has already finished. */
export const backgroundJobAnswer = (
  job: BackgroundJobRow,
  path: string,
  words: string | Notice = findJobTexts(job).outcome(job.result),
): PageAnswer => (job.finished_at === null ? redirect(backgroundJobPath(job)) : redirect(path, words))
