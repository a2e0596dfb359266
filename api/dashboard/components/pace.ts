/** Describes the rate of a task and its remaining time. Pure. */
import { duration, plural } from './cell.ts'

const MINUTE = 60_000

/**
 * Returns a text such as `about 300 emails a minute, done in about 4 minutes`, or '' if it is too early to
 * tell.
 * @param least the minimum time since the start, in milliseconds.
 */
export function paceWords(
  { done, left, since }: { done: number; left: number; since: string | null },
  now: Date,
  { noun, least = MINUTE }: { noun: string; least?: number },
): string {
  const gone = since === null ? 0 : now.getTime() - Date.parse(since)
  if (done === 0 || left <= 0 || gone < least) return ''
  const rate = done / (gone / MINUTE)
  return `about ${plural(Math.max(1, Math.round(rate)), noun)} a minute, done in about ${duration((left / rate) * 60)}`
}
