/** How errors are shown and logged. */
import { pino } from 'pino'
import { StatementTimeoutError } from 'slonik'
import { describeError } from '../../../api/dashboard/server/errors.ts'
import { RequestError } from '../../../db/errors.ts'
import { logOptions } from '../../../db/process/log.ts'
import t from '../../support/tap.ts'

const REQUEST = 'request-17'

/** Returns the shown error and the log lines. */
function seen(error: unknown) {
  const lines: Record<string, unknown>[] = []
  const stream = { write: (line: string) => void lines.push(JSON.parse(line)) }
  const fault = describeError(error, REQUEST, pino(logOptions({ name: 'test', LOG_LEVEL: 'debug' }), stream))
  return { fault, lines }
}

t.test('shows the message of a RequestError without logging it', async (t) => {
  const busy = seen(new RequestError('unavailable', 'too many bodies are coming in at once; please retry', 1))
  t.match(busy.fault, { status: 503, title: 'Try again later', retry_after: 1 })
  t.equal(busy.fault.words, 'too many bodies are coming in at once; please retry')
  const state = seen(new RequestError('invalid_state', 'the broadcast is sent'))
  t.match(state.fault, { status: 409, title: 'Request rejected', words: 'the broadcast is sent' })
  t.strictSame([...busy.lines, ...state.lines], [])
})

t.test('a statement timeout shows “Request timed out”', async (t) => {
  const { fault, lines } = seen(new StatementTimeoutError(new Error('canceling statement')))
  t.match(fault, { status: 503, title: 'Request timed out', retry_after: undefined })
  t.match(lines, [{ msg: 'page timed out', request_id: REQUEST }])
})

t.test('reports that the database is unavailable', async (t) => {
  const { fault, lines } = seen(Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }))
  t.match(fault, { status: 503, title: 'Try again later', retry_after: undefined, words: /database/ })
  t.match(lines, [{ msg: 'database unavailable', request_id: REQUEST }])
})

t.test('an internal error shows the request ID and is logged', async (t) => {
  const { fault, lines } = seen(new TypeError('undefined is not a function'))
  t.match(fault, {
    status: 500,
    title: 'Internal error',
    words: /find the cause in the log under the request ID request-17\.$/,
  })
  t.notMatch(fault.words, /undefined/)
  t.match(lines, [{ msg: 'request failed', request_id: REQUEST, err: { type: 'TypeError' } }])
})
