/** Counts of emails for a bulk requeue, in its form and question. */

import { RequestError } from '../../../db/errors.ts'
import type { countRequeueable } from '../../../db/messages/emails/bulk.ts'
import { plural } from '../../../db/plural.ts'
import type { Field } from '../components/section.ts'
import { compact, hidden } from '../server/builders.ts'
import { TEXTS } from '../texts.ts'
import { FAILED_STATUS } from './emails-filter.ts'
import { FORCE } from './requeue.ts'

/** The emails that can be sent again, counted. */
export type Requeueable = Awaited<ReturnType<typeof countRequeueable>>

/** Formats a count for a sentence. A count that timed out is a minimum. */
export function requeueableWords(
  count: number,
  { isAll }: Pick<Requeueable, 'isAll'>,
  [one, many = `${one}s`]: [string, string?],
): string {
  if (isAll) return plural(count, one, many)
  return count === 0 ? `the ${many}` : `at least ${plural(count, one, many)}`
}

/** Names the emails that no provider has accepted, as the filter does. */
export const unsentNoun = (filter: URLSearchParams): 'failed email' | 'queued email' =>
  filter.get('status') === FAILED_STATUS ? 'failed email' : 'queued email'

/** Returns hidden fields with the counts, for the question. */
export const requeueableFields = ({ waiting, rejected, isAll }: Requeueable): Field[] =>
  compact([
    hidden('waiting', String(waiting)),
    hidden('rejected', String(rejected)),
    !isAll && hidden('timed_out', 'yes'),
  ])

/** Reads the counts from the form. @throws RequestError bad_request if they are missing or invalid. */
function readRequeueable(form: URLSearchParams): Omit<Requeueable, 'suppressed'> {
  const [waiting = '', rejected = ''] = ['waiting', 'rejected'].map((name) => form.get(name) ?? '')
  const isAll = form.get('timed_out') !== 'yes'
  if ([waiting, rejected].every((count) => /^\d{1,9}$/.test(count)))
    return { waiting: Number(waiting), rejected: Number(rejected), isAll }
  throw new RequestError('bad_request', TEXTS.formOutOfDate)
}

/** Describes the emails to send again. */
export function describeRequeued(form: URLSearchParams): string {
  const counts = readRequeueable(form)
  const { waiting, rejected, isAll } = counts
  const waits = requeueableWords(waiting, counts, [unsentNoun(form)])
  if (form.get('force') !== FORCE) return waits
  if (isAll && waiting === 0) return requeueableWords(rejected, counts, ['rejected email'])
  return isAll && rejected === 0
    ? waits
    : `${waits} and ${requeueableWords(rejected, counts, ['rejected one'])}`
}

export const noneToSend = (suppressed: number): RequestError =>
  new RequestError('invalid_state', suppressed > 0 ? TEXTS.allSuppressed : TEXTS.noneToSend)
