/** Queues that poll at the same time share one statement. */
import { createDueQuestions } from '../../../db/queue/due.ts'
import t from '../../support/tap.ts'

t.test('queues that check at the same time share a statement', async (t) => {
  const asked: string[][] = []
  const isDue = createDueQuestions(async (jobs) => {
    asked.push([...jobs])
    return new Set(['deliver-email'])
  })
  const jobs = ['deliver-email', 'deliver-webhook', 'deliver-email']
  t.strictSame(await Promise.all(jobs.map(isDue)), [true, false, true])
  t.equal(await isDue('deliver-webhook'), false)
  t.strictSame(asked, [['deliver-email', 'deliver-webhook'], ['deliver-webhook']])
})

t.test('every caller gets the error, and the next check runs', async (t) => {
  let fails = true
  const isDue = createDueQuestions(async () => {
    if (fails) throw new Error('the database is away')
    return new Set(['deliver-email'])
  })
  const answers = await Promise.allSettled([isDue('deliver-email'), isDue('deliver-webhook')])
  const statuses = answers.map(({ status }) => status)
  t.strictSame(statuses, ['rejected', 'rejected'])
  fails = false
  t.equal(await isDue('deliver-email'), true)
})
