/** The limits for bodies in memory, which depend on the memory limit of the process. */
import {
  BODY_BUDGET,
  budgetFor,
  LARGE_BODIES_SHARE,
  largestBody,
  SMALL_BODY_BYTES,
} from '../../../api/http/body-budget.ts'
import { MAX_BODY_BYTES } from '../../../api/http/read-body.ts'
import t from '../../support/tap.ts'

const MIB = 1024 * 1024

t.test('with any memory limit, each limit fits the largest body', (t) => {
  for (let limit = 100e6; limit <= 600e6; limit += 10e6) {
    const { perOwner, unauthenticated, perPath, total } = budgetFor(limit)
    const largest = largestBody(budgetFor(limit))
    t.ok(largest >= 3.5 * MIB && largest <= perOwner * LARGE_BODIES_SHARE)
    t.ok(unauthenticated + largest <= total * LARGE_BODIES_SHARE, 'unauthenticated bodies leave room for it')
    t.ok(Math.min(perPath, unauthenticated) * LARGE_BODIES_SHARE >= 3 * MIB, 'the largest post of a hook')
  }
  t.strictSame(budgetFor(Number.POSITIVE_INFINITY), BODY_BUDGET)
  t.equal(largestBody(BODY_BUDGET), MAX_BODY_BYTES)
  t.end()
})

t.test('an eighth of each limit is reserved for bodies of up to 64 KiB', (t) => {
  t.equal(1 - LARGE_BODIES_SHARE, 1 / 8)
  t.equal(SMALL_BODY_BYTES, 65_536)
  t.end()
})
