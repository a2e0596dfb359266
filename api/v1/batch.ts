/**
 * What the three batch endpoints share: an id or a refusal for each item.
 * Promises: outcomes come in request order. A failing item leaves the others alone. An item that cannot be
 * stored never reaches the database. Must not know what an item is.
 */
import { errorData, RequestError } from '../../db/errors.ts'
import type { Metrics } from '../../db/process/metrics.ts'
import { type Answer, type Trace, tracing } from '../http/errors.ts'
import { countRejections } from '../http/refusals.ts'

/** What became of one item: the id it was accepted under, or why it was not. */
export type BatchItem = string | RequestError

/** The answer. A per-item rate_limited has no Retry-After: there is no header to put it in. */
export function batchAnswer(items: readonly BatchItem[], metrics: Metrics): Answer {
  countRejections(metrics, items)
  const data = items.map((item, index) =>
    item instanceof RequestError ? { index, error: errorData(item) } : { index, id: item },
  )
  return { status: 200, body: { data }, trace: traceOf(items) }
}

/** What became of how many, and the most common reason. */
function traceOf(items: readonly BatchItem[]): Trace {
  const codes = items.flatMap((item) => (item instanceof RequestError ? [item.code] : []))
  const ids = items.flatMap((item) => (item instanceof RequestError ? [] : [item]))
  const times = (code: string): number => codes.filter((each) => each === code).length
  const [code] = [...new Set(codes)].toSorted((one, other) => times(other) - times(one))
  const counts = { accepted: ids.length, refused: codes.length }
  return { ...tracing(ids), ...counts, ...(code === undefined ? {} : { code }) }
}

/** Each item's outcome, in request order. @param accept takes those together that are not refused already. */
export async function acceptEach<T, O, R>(
  items: readonly (T | RequestError)[],
  accept: (items: readonly T[]) => Promise<readonly O[]>,
  outcomeOf: (outcome: O) => R,
): Promise<(R | RequestError)[]> {
  const valid = items.flatMap((item) => (item instanceof RequestError ? [] : [item]))
  const outcomes = valid.length === 0 ? [] : [...(await accept(valid))]
  return items.map((item) => {
    if (item instanceof RequestError) return item
    const outcome = outcomes.shift()
    if (outcome === undefined) throw new Error('every item must have an outcome')
    return outcomeOf(outcome)
  })
}
