/** What went wrong, as a page: in the words of a refusal, or with the request's id alone. */
import { Refusal } from '../../../db/errors.ts'
import { isDatabaseUnavailable, isTooSlow } from '../../../db/postgres/pool.ts'
import type { Log } from '../../../db/process/log.ts'
import { STATUS } from '../../http/errors.ts'
import type { View } from '../drawn/section.ts'

export type Fault = { status: number; title: string; words: string; retry_after?: number | undefined }

const TITLES: Record<number, string> = {
  400: 'Request refused',
  403: 'Not allowed',
  404: 'Page not found',
  405: 'Not allowed',
  503: 'Try again later',
}

/** What to say of anything that was thrown; what is our own fault is logged. */
export function faultOf(error: unknown, requestId: string, log: Log): Fault {
  if (error instanceof Refusal) {
    const status = STATUS[error.code]
    const words = `${error.message.charAt(0).toUpperCase()}${error.message.slice(1)}.`
    return { status, title: TITLES[status] ?? 'Request refused', words, retry_after: error.retry_after }
  }
  if (isTooSlow(error)) {
    log.warn({ err: error }, 'a page took too long')
    const words = 'This took too long and was stopped. Narrow the filter, or choose a shorter time.'
    return { status: 503, title: 'Too much to look through', words }
  }
  if (isDatabaseUnavailable(error)) {
    log.warn({ err: error }, 'the database is unavailable')
    return {
      status: 503,
      title: 'Try again later',
      words: 'The database does not answer. Try again in a moment.',
    }
  }
  log.error({ err: error }, 'request failed')
  const words = `Something went wrong on our side. The operator of this service finds it in the log by ${requestId}.`
  return { status: 500, title: 'That is our fault', words }
}

/** A fault as a page of its own. */
export const faultView = ({ title, words }: Fault): View => ({
  title,
  sections: [
    { kind: 'text', paragraphs: [words] },
    { kind: 'actions', links: [{ href: '', label: 'To the dashboard' }] },
  ],
})
