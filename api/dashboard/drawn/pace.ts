/** How fast something goes on and how long it may take still, in words. Pure. */
import { duration, plural } from './cell.ts'

const MINUTE = 60_000

/**
 * @param least how long it must have gone on, in milliseconds, before its pace says anything.
 * @returns '' where there is not enough to tell.
 */
export function paceWords(
  { since, done, left, noun }: { since: string | null; done: number; left: number; noun: string },
  now: Date,
  least = MINUTE,
): string {
  const passed = since === null ? 0 : now.getTime() - Date.parse(since)
  if (done === 0 || left === 0 || passed < least) return ''
  const rate = done / (passed / MINUTE)
  return `about ${plural(Math.max(1, Math.round(rate)), noun)} a minute, done in about ${duration((left / rate) * 60)}`
}
