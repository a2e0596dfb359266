/** Turns errors into pages. Internal errors show only the request's ID. */
import { type Code, RequestError } from '../../../db/errors.ts'
import { isTooSlow } from '../../../db/postgres/pool.ts'
import type { Log } from '../../../db/process/log.ts'
import { STATUS, toRequestError } from '../../http/errors.ts'
import type { Link, View } from '../components/section.ts'
import type { Reason } from './form.ts'

export type Fault = {
  status: number
  title: string
  words: string
  reason: Reason
  retry_after?: number | undefined
}

const TITLES: Record<number, string> = {
  400: 'Something went wrong',
  403: 'Not allowed',
  404: 'Page not found',
  405: 'Not allowed',
  413: 'Too large',
  503: 'Try again later',
}

/** Texts for errors that aren't RequestErrors, by the code that the API would return. */
const WORDS: Partial<Record<Code, { title: string; words: (requestId: string) => string }>> = {
  unavailable: { title: 'Try again later', words: () => 'The database is unavailable. Try again later.' },
  internal_error: {
    title: 'Internal error',
    words: (requestId) =>
      `Something went wrong on our side. The operator of this service can find the cause in the log under the request ID ${requestId}.`,
  },
}

/** Describes a thrown error. Logs it unless it is a RequestError. */
export function describeError(error: unknown, requestId: string, log: Log): Fault {
  if (isTooSlow(error)) {
    log.warn({ request_id: requestId, err: error }, 'page timed out')
    const words =
      'The request timed out. Reload the page. If it has a filter, narrow it or choose a shorter time range.'
    return { status: 503, title: 'Request timed out', words, reason: { message: words, fields: [] } }
  }
  const reason = toRequestError(error, requestId, log)
  const { code, message, retry_after } = reason
  const status = STATUS[code]
  const own = error instanceof RequestError ? undefined : WORDS[code]
  if (own) return { status, title: own.title, words: own.words(requestId), reason }
  return { status, title: TITLES[status] ?? 'Request rejected', words: message, reason, retry_after }
}

/** @param help a sentence about getting access, or ''. @param links the links before the one to the dashboard. */
export const faultView = ({ title, words }: Fault, help: string, links: readonly Link[]): View => ({
  title,
  sections: [
    { kind: 'text', paragraphs: help === '' ? [words] : [words, help] },
    { kind: 'actions', links: [...links, { href: '', label: 'Overview', main: links.length === 0 }] },
  ],
})
