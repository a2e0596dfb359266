/**
 * A contact that unsubscribed, complained or bounced is only subscribed again by the calls for that, whatever
 * other changes happen concurrently and in any order. An erasure keeps the opt-out.
 */
import fc from 'fast-check'
import { setMapping, showDraft, startDraft, storeDraft } from '../../../../db/audience/import/draft.ts'
import { leaveByLink } from '../../../../db/audience/subscription/subscription.ts'
import { liftSuppression } from '../../../../db/audience/suppressions/lift.ts'
import { findSuppressed } from '../../../../db/audience/suppressions/suppressed.ts'
import { RequestError } from '../../../../db/errors.ts'
import { runBackgroundJob } from '../../../../db/maintenance/background-jobs/background-jobs.ts'
import { report } from '../../../support/contacts.ts'
import { erasePerson } from '../../../support/erase.ts'
import { makeTeam, startService, type TestTeam } from '../../../support/service.ts'
import t from '../../../support/tap.ts'
import { startWorker } from '../../../support/worker.ts'

const service = await startService(t, { lockTimeout: 30_000 })
const { call, database, deps } = service
await startWorker(t, service, { smtp_url: 'smtp://127.0.0.1:9' })

const PEOPLE = ['ana@example.org', 'ben@example.org'] as const
type Person = (typeof PEOPLE)[number]

/** Steps that create or change contacts, and must not resubscribe anyone. */
const WRITES = ['create', 'bulk', 'import', 'import', 'patch', 'erase'] as const
/** Steps after which a recipient must not get marketing. */
const CLOSES = ['unsubscribe', 'marketing', 'link', 'bounced', 'complained', 'suppressions'] as const
/** Steps that can resubscribe a contact: by the team, by a user with a reason, or by deleting it. */
const OPENS = ['resubscribe', 'lift', 'delete'] as const

const person = fc.constantFrom(...PEOPLE)
const closing = fc.record({ person, act: fc.constantFrom(...CLOSES) })
const writing = fc.record({ person, act: fc.constantFrom(...WRITES) })
const opening = fc.record({ person, act: fc.constantFrom(...OPENS) })
const step = fc.oneof(
  { weight: 6, arbitrary: writing },
  { weight: 3, arbitrary: closing },
  { weight: 1, arbitrary: opening },
)
type Step = typeof step extends fc.Arbitrary<infer S> ? S : never

/**
 * Steps that run every time, because random runs may not contain them: a recipient opts out, is erased, and
 * is imported again.
 */
const ERASED: Step[][] = (['unsubscribe', 'erase', 'import'] as const).map((act) => [
  { person: PEOPLE[0], act },
])

/** Imports a file of one column to its end, as the page does. */
async function importFile(team: string, people: readonly string[], purpose: 'contacts' | 'suppressions') {
  const at = { tx: database, now: new Date() }
  const file = { name: 'people.csv', source: ['email', ...people].join('\n'), encoding: 'UTF-8', purpose }
  const id = await storeDraft(at, team, file, 'cli')
  const { mapping } = await showDraft(database, team, id)
  const suppress = mapping.suppress && { ...mapping.suppress, detail: 'a list from elsewhere' }
  await setMapping(database, team, id, { ...mapping, suppress })
  await runBackgroundJob(deps, {
    kind: 'contact.import',
    given: { import_id: id, file_name: file.name },
    ...{ team_id: team, actor: 'cli' },
    store: (tx) => startDraft(tx, team, id, null),
  })
}

const isDone = (doing: Promise<unknown>): Promise<boolean> =>
  doing.then(
    () => true,
    (error) => (error instanceof RequestError ? false : Promise.reject(error)),
  )

/** Runs one step. @returns true if it succeeded. */
async function act(team: TestTeam, { person: email, act: what }: Step): Promise<boolean> {
  const { id, key } = team
  const asked = async (method: string, path: string, body?: unknown) =>
    (await call(method, `/v1/${path}`, { key, body })).status < 300
  const now = new Date()
  switch (what) {
    case 'create':
      return asked('POST', 'contacts', { email })
    case 'bulk':
      return asked('POST', 'contacts/bulk', { contacts: PEOPLE.map((one) => ({ email: one })) })
    case 'import':
      return isDone(importFile(id, [email], 'contacts'))
    case 'suppressions':
      return isDone(importFile(id, [email], 'suppressions'))
    case 'patch':
      return asked('PATCH', `contacts/${email}`, { properties: { a: 'b' } })
    case 'erase':
      return isDone(erasePerson(deps, id, email))
    case 'marketing':
      return asked('POST', 'marketing/unsubscribe', { email })
    case 'link':
      return isDone(
        database.transaction((tx) => leaveByLink({ tx, now, secrets: deps.secrets }, id, email, null)),
      )
    case 'unsubscribe':
    case 'resubscribe':
      return asked('POST', `contacts/${email}/${what}`)
    case 'delete':
      return asked('DELETE', `contacts/${email}`)
    case 'lift':
      return isDone(
        database.transaction((tx) =>
          liftSuppression({ ...deps, tx, now, actor: 'cli' }, id, {
            identity: email,
            reason: 'asked by phone',
          }),
        ),
      )
    default:
      // A report about an address that isn't a contact has no effect on a contact.
      await report(service, team, email, what)
      return [what, 'complained', 'unsubscribed'].includes((await statusOf(team, email)) ?? '')
  }
}

const among = <W extends string>(words: readonly W[], word: string): word is W =>
  words.some((one) => one === word)

async function statusOf({ key }: TestTeam, email: Person): Promise<string | null> {
  const { status, body } = await call('GET', `/v1/contacts/${email}`, { key })
  return status === 404 ? null : body.status
}

/**
 * Returns the status of a contact, or that its address is suppressed. A contact that is created again is
 * subscribed, but gets nothing.
 */
async function stateOf(team: TestTeam, email: Person): Promise<string | null> {
  const status = await statusOf(team, email)
  if (status !== 'subscribed') return status
  const found = await findSuppressed(database, deps.secrets, team.id, [email])
  return found.has(email) ? 'suppressed' : status
}

t.test('concurrent imports, upserts and erasures never resubscribe anyone', async (t) => {
  let [held, again] = [0, 0]
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(step, { minLength: 1, maxLength: 3 }), { minLength: 3, maxLength: 7 }),
      async (rounds) => {
        const team = await makeTeam(service)
        for (const email of PEOPLE) await act(team, { person: email, act: 'create' })
        const closed = new Set<Person>()
        for (const together of rounds) {
          const done = await Promise.all(together.map((one) => act(team, one)))
          const taken = together.filter((_, at) => done[at])
          for (const email of PEOPLE) {
            const own = taken.filter(({ person }) => person === email)
            const was = await stateOf(team, email)
            if (own.some((one) => among(OPENS, one.act))) {
              // Depending on the order, either result is right. If the contact isn't subscribed now, it must
              // stay so.
              if (was === null || was === 'subscribed') closed.delete(email)
              else closed.add(email)
              continue
            }
            if (own.some((one) => among(CLOSES, one.act))) closed.add(email)
            if (!closed.has(email)) continue
            held++
            if (was === null) again++
            if (was === 'subscribed')
              throw new Error(`${email} is subscribed after ${JSON.stringify(together)}`)
          }
        }
      },
    ),
    { numRuns: 15, examples: [[ERASED]] },
  )
  t.ok(held > 20 && again > 0, `${held} times somebody was not to be subscribed, ${again} times erased`)
})
