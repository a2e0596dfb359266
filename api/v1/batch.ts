/**
 * The results of the three batch endpoints: an ID or an error for each item, in the order of the request. An
 * error in an item doesn't affect the others. Invalid items aren't passed to the database.
 */
import { errorData, RequestError } from '../../db/errors.ts'
import type { Metrics } from '../../db/process/metrics.ts'
import { type Answer, type Trace, tracing } from '../http/errors.ts'
import { countRejections } from '../http/rejections.ts'

/** The result of an item: the ID it was accepted with, or its error. */
export type BatchItem = string | RequestError

/** Builds the response. An item's rate_limited has no Retry-After, because an item has no headers. */
export function batchAnswer(items: readonly BatchItem[], metrics: Metrics): Answer {
  countRejections(metrics, items)
  const data = items.map((item, index) =>
    item instanceof RequestError ? { index, error: errorData(item) } : { index, id: item },
  )
  return { status: 200, body: { data }, trace: buildTrace(items) }
}

/** Counts the results for the log, with the most common error code. */
function buildTrace(items: readonly BatchItem[]): Trace {
  const codes = items.flatMap((item) => (item instanceof RequestError ? [item.code] : []))
  const ids = items.flatMap((item) => (item instanceof RequestError ? [] : [item]))
  const times = (code: string): number => codes.filter((each) => each === code).length
  const [code] = [...new Set(codes)].toSorted((one, other) => times(other) - times(one))
  const counts = { accepted: ids.length, refused: codes.length }
  return { ...tracing(ids), ...counts, ...(code === undefined ? {} : { code }) }
}

/** Returns the result of each item, in the order of the request. @param accept gets the valid items, all at once */
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
