/**
 * Manages the slots of a process: how many messages are with their providers at once. Queues share them evenly, and
 * senders according to their responses. A slow message of a sender with its own limit returns its slot and is counted
 * separately, up to the number of slots. Large messages occupy at most half of the slots, and don't count towards
 * their queue's turn. A free slot goes to the queue with the fewest busy slots, and there to the message that has
 * waited longest and may start. A message without a slot in time doesn't start. A queue may yield to others
 * (queue-priority.ts).
 */
import type { Sender } from '../../db/delivery/senders/rate-limit.ts'
import { SLOW_SEND_S } from './breaker.ts'
import { createYielding, type HigherPriority, type Yielding } from './queue-priority.ts'

/** A request for a slot: the sender, whether it responds well, and whether the message is large. */
export type Applicant = { sender: Pick<Sender, 'key' | 'at_once'>; isProven(): boolean; is_large?: boolean }

export type SlotShare = HigherPriority & {
  size: number
  /** Limits how much of it may be claimed. */
  yielding: Yielding
  /** @param patience milliseconds to wait for a slot. @returns null if none was free in time. */
  run<T>(applicant: Applicant, work: () => Promise<T>, patience: number): Promise<T | null>
  close(): void
}

type Waiting = { applicant: Applicant; answer: (given: boolean) => void; late: boolean }
type Queue = {
  size: number
  busy: number
  large: number
  waiting: Set<Waiting>
  closed: boolean
  /** How many have started, and when a small one last waited, by `performance.now()`. */
  begun: number
  starved_at: number
}

/** An occupied slot. It can stop counting as unproven, or stop counting at all. */
type Held = { stepAside(): void; returnToQueue(): void }
const NOT_HELD: Held = { stepAside() {}, returnToQueue() {} }

/** Counts the slots of senders that have their own limit, and how many of these are unproven. */
function createHeld(limit: number) {
  const bySender = new Map<string, number>()
  let unproven = 0
  const most = Math.max(1, Math.floor(limit / 2))
  return {
    mayTake({ sender: { key, at_once }, isProven }: Applicant): boolean {
      if (at_once === undefined) return true
      const held = bySender.get(key) ?? 0
      return isProven() ? held < at_once : held < 1 && unproven < most
    },
    take({ sender: { key, at_once }, isProven }: Applicant): Held {
      if (at_once === undefined) return NOT_HELD
      let counts = isProven() ? 0 : 1
      bySender.set(key, (bySender.get(key) ?? 0) + 1)
      unproven += counts
      const stepAside = (): void => {
        unproven -= counts
        counts = 0
      }
      return {
        stepAside,
        returnToQueue() {
          stepAside()
          const left = (bySender.get(key) ?? 1) - 1
          if (left > 0) bySender.set(key, left)
          else bySender.delete(key)
        },
      }
    },
  }
}

function count(queue: Queue, { is_large }: Applicant, change: 1 | -1): void {
  queue.busy += change
  if (is_large) queue.large += change
}

/** Returns the busy slots that count towards a queue's turn. */
const countedSlots = ({ busy, large }: Queue): number => busy - large

/** Records a start. If it had to wait, its queue is short of slots. */
function noteBegun(queue: Queue, { applicant, late }: Waiting): void {
  queue.begun += 1
  if (late && !applicant.is_large) queue.starved_at = performance.now()
}

/** Decides who gets a slot. @param limit the number of slots. */
function createTurns(limit: number) {
  const queues: Queue[] = []
  const held = createHeld(limit)
  let busy = 0

  const firstOf = ({ waiting }: Queue): Waiting | undefined => {
    const isFull = queues.reduce((sum, { large }) => sum + large, 0) >= Math.max(1, Math.floor(limit / 2))
    // If one message of a sender doesn't fit, no other one does.
    const refused = new Set<string>()
    for (const each of waiting) {
      const { sender, is_large } = each.applicant
      if (refused.has(sender.key) || (is_large && isFull)) continue
      if (held.mayTake(each.applicant)) return each
      refused.add(sender.key)
    }
    return undefined
  }
  const begin = (queue: Queue, next: Waiting): void => {
    queue.waiting.delete(next)
    count(queue, next.applicant, 1)
    noteBegun(queue, next)
    busy += 1
    next.answer(true)
  }
  const grant = (): void => {
    const tried = new Set<Queue>()
    while (busy < limit) {
      const [queue] = queues
        .filter((each) => !tried.has(each) && each.waiting.size > 0 && each.busy < each.size)
        .sort((one, other) => countedSlots(one) - countedSlots(other))
      if (!queue) return
      const next = firstOf(queue)
      if (next) begin(queue, next)
      else tried.add(queue)
    }
  }
  return {
    open: (queue: Queue): void => void queues.push(queue),
    /** Waits for a slot. @returns null if none was free in time. */
    take: (queue: Queue, applicant: Applicant, patience: number): Promise<Held | null> =>
      new Promise((resolve) => {
        const answer = (isGiven: boolean): void => {
          clearTimeout(tooLate)
          queue.waiting.delete(waiting)
          resolve(isGiven ? held.take(applicant) : null)
        }
        const tooLate = setTimeout(answer, patience, false)
        const waiting = { applicant, answer, late: false }
        queue.waiting.add(waiting)
        grant()
        waiting.late = true
      }),
    leave(queue: Queue, applicant: Applicant): void {
      count(queue, applicant, -1)
      busy -= 1
      grant()
    },
    grant,
  }
}

/**
 * @param limit the number of slots.
 * @param patience how long a message of a sender with its own limit may occupy a slot, in milliseconds.
 */
export function createSlots(limit: number, patience = SLOW_SEND_S * 1_000) {
  const turns = createTurns(limit)
  let overtime = 0

  /** @returns a function that returns the slot. Null if none was free in time. */
  const enter = async (queue: Queue, applicant: Applicant, wait: number): Promise<(() => void) | null> => {
    const held = queue.closed ? null : await turns.take(queue, applicant, wait)
    if (held === null) return null
    if (applicant.sender.at_once === undefined) return () => turns.leave(queue, applicant)
    let isLate = false
    const timer = setInterval(() => {
      if (overtime >= limit) return
      clearInterval(timer)
      isLate = true
      overtime += 1
      held.stepAside()
      turns.leave(queue, applicant)
    }, patience)
    return () => {
      clearInterval(timer)
      held.returnToQueue()
      if (!isLate) return turns.leave(queue, applicant)
      overtime -= 1
      turns.grant()
    }
  }
  return {
    /**
     * Opens a queue's share. @param most the part of all slots that it may occupy at once, from 0 to 1. The default is
     * all.
     * @param prior the queues with priority over it. By default, it yields to no queue.
     */
    share(given: { most?: number; prior?: readonly HigherPriority[] } = {}): SlotShare {
      const { most = 1, prior = [] } = given
      const size = Math.max(1, Math.floor(limit * most))
      const counts = { busy: 0, large: 0, begun: 0, starved_at: Number.NEGATIVE_INFINITY }
      const queue: Queue = { size, waiting: new Set(), closed: false, ...counts }
      turns.open(queue)
      return openShare(queue, createYielding(prior), (applicant, wait) => enter(queue, applicant, wait))
    },
  }
}

function openShare(
  queue: Queue,
  yielding: Yielding,
  enter: (applicant: Applicant, patience: number) => Promise<(() => void) | null>,
): SlotShare {
  return {
    size: queue.size,
    yielding,
    // Large ones don't count, because they wait for each other and rarely for the CPU.
    lastStarvedAt: () =>
      [...queue.waiting].some(({ applicant }) => !applicant.is_large) ? performance.now() : queue.starved_at,
    begun: () => queue.begun,
    async run(applicant, work, patience) {
      const leave = await enter(applicant, patience)
      if (leave === null) return null
      try {
        return await work()
      } finally {
        leave()
      }
    },
    close() {
      queue.closed = true
      for (const { answer } of queue.waiting) answer(false)
    },
  }
}
