/** How fast something goes on and how long it may take still, in words. Pure. */
import { duration, plural } from './cell.ts'

const MINUTE = 60_000

/**
 * Such as `about 300 emails a minute, done in about 4 minutes`; '' until there is enough to tell.
 * @param least for how long it has to be under way, in milliseconds.
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
