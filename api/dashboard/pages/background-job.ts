/**
 * Describes background jobs. Redirects after starting one: with the result if it has already finished,
 * otherwise to the page with its progress.
 */
import type { Deliverable } from '../../../db/channels/channel.sql.ts'
import { CHANNELS } from '../../../db/channels/channels.sql.ts'
import { EMAIL } from '../../../db/channels/email.sql.ts'
import { WEBHOOK } from '../../../db/channels/webhook.sql.ts'
import type { BackgroundJobRow } from '../../../db/maintenance/background-jobs/background-jobs.sql.ts'
import { plural } from '../components/cell.ts'
import { type Notice, type PageAnswer, redirect, teamPath } from '../server/page.ts'

type JobTexts = { title: string; verb: string; outcome: (result: Record<string, unknown>) => string }

const requeueWords = ({ noun }: Pick<Deliverable, 'noun'>): JobTexts => ({
  title: `Send ${noun}s again`,
  verb: 'Checked',
  outcome: ({ changed }) => `${plural(Number(changed ?? 0), noun)} queued to be sent again.`,
})

const DELETE_WORDS: JobTexts = {
  title: 'Delete emails',
  verb: 'Checked',
  outcome: ({ changed }) => `${plural(Number(changed ?? 0), 'email')} deleted.`,
}

/** Describes the result of re-evaluating stored suppressions, by cause. */
export const describeReview = ({
  bounce,
  soft_bounces,
  complaint,
  manual,
}: Record<string, unknown>): string =>
  `${Number(bounce ?? 0)} bounces, ${Number(soft_bounces ?? 0)} soft bounces, ${Number(complaint ?? 0)} complaints, ${Number(manual ?? 0)} added manually.`

/** Titles and results of each kind of job. */
const WORDS: Readonly<Record<string, JobTexts>> = {
  'contact.import': {
    title: 'Import contacts',
    verb: 'Imported',
    outcome: ({ refused }) => `${plural(Number(refused ?? 0), 'record')} rejected. All others were imported.`,
  },
  'suppression.import': {
    title: 'Import suppressions',
    verb: 'Imported',
    outcome: ({ refused }) =>
      `${plural(Number(refused ?? 0), 'record')} rejected. All others are suppressed.`,
  },
  'suppression.lift': {
    title: 'Lift suppressions',
    verb: 'Checked',
    outcome: ({ lifted }) => `${plural(Number(lifted ?? 0), 'address', 'addresses')} lifted.`,
  },
  'suppression.judge': {
    title: 'Re-evaluate suppressions',
    verb: 'Checked',
    outcome: (result) => describeReview(result),
  },
  'contact.erase': {
    title: 'Erase personal data',
    verb: 'Checked',
    outcome: ({ emails, waiting_emails_deleted, reports }) =>
      `${plural(Number(emails ?? 0), 'email')} rewritten, ${Number(waiting_emails_deleted ?? 0)} deleted, ${plural(Number(reports ?? 0), 'report')} deleted.`,
  },
  ...Object.fromEntries(
    [...CHANNELS, WEBHOOK].map((channel): [string, JobTexts] => [
      `${channel.name}.requeue`,
      requeueWords(channel),
    ]),
  ),
  'webhook.requeue_matching': requeueWords(WEBHOOK),
  'email.requeue_apart': requeueWords(EMAIL),
  'email.delete': DELETE_WORDS,
  'email.delete_apart': DELETE_WORDS,
  'queue.redrive': {
    title: 'Retry failed jobs',
    verb: 'Moved back',
    outcome: ({ redriven }) => `${plural(Number(redriven ?? 0), 'job')} will be retried.`,
  },
  'webhook.replay': {
    title: 'Send webhook messages again',
    verb: 'Queued again',
    outcome: ({ replayed }) => `${plural(Number(replayed ?? 0), 'webhook message')} queued to be sent again.`,
  },
  'report.purge': {
    title: 'Redact stored reports',
    verb: 'Checked',
    outcome: ({ changed }) => `${plural(Number(changed ?? 0), 'stored report')} redacted or deleted.`,
  },
}

/** Returns the texts of a job. An unknown kind is shown by its name. */
export const findJobTexts = ({ kind }: Pick<BackgroundJobRow, 'kind'>): JobTexts =>
  WORDS[kind] ?? { title: kind, verb: 'Done', outcome: () => '' }

export const backgroundJobPath = ({ team_id, id }: Pick<BackgroundJobRow, 'team_id' | 'id'>): string =>
  team_id === null ? `/operator/background-jobs/${id}` : teamPath({ id: team_id }, 'background-jobs', id)

/** Returns the response after starting a job. @param path the target if the job has already finished. */
export const backgroundJobAnswer = (
  job: BackgroundJobRow,
  path: string,
  words: string | Notice = findJobTexts(job).outcome(job.result),
): PageAnswer => (job.finished_at === null ? redirect(backgroundJobPath(job)) : redirect(path, words))
