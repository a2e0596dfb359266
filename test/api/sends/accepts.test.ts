/** Concurrent single sends are committed together, each with its own result. */
import { sql } from 'slonik'
import { lockAccount } from '../../../db/accounts/teams/limits.ts'
import { returnPath } from '../../../db/messages/emails/return-path.ts'
import { countRow } from '../../../db/postgres/rows.ts'
import { jobsIn, storedReports } from '../../support/reports.ts'
import { rowCounts, usedBy } from '../../support/rows.ts'
import {
  anEmail,
  makeTeam,
  type Reply,
  SMTP_REPORT_TOKEN,
  startService,
  type TestTeam,
} from '../../support/service.ts'
import t from '../../support/tap.ts'
import { aMessage, makeTemplate } from '../../support/whatsapp.ts'

const service = await startService(t)
const send = (team: TestTeam, changes: Record<string, unknown> = {}): Promise<Reply> =>
  service.call('POST', '/v1/emails', { key: team.key, body: anEmail(changes) })
const statuses = (replies: readonly Reply[]): number[] => replies.map(({ status }) => status)

/** Runs `work` while another transaction has locked the team's account. */
async function whileLocked<T>(team: TestTeam, work: () => Promise<T>): Promise<T> {
  return service.database.transaction(async (tx) => {
    await lockAccount(tx, team.id)
    return work()
  })
}

const transactions = (teams: readonly TestTeam[]): Promise<number> =>
  service.database.oneFirst(sql.type(countRow)`
    select count(distinct xmin::text) as count from accepted_emails
    where team_id = any(${sql.array(
      teams.map(({ id }) => id),
      'uuid',
    )})`)

t.test('concurrent sends of many teams share transactions', async (t) => {
  const teams = await Promise.all(Array.from({ length: 20 }, () => makeTeam(service)))
  const replies = await Promise.all(teams.flatMap((team) => [send(team), send(team)]))
  t.ok(replies.every(({ status }) => status === 201))
  t.equal(new Set(replies.map(({ body }) => body.id)).size, 40)
  for (const team of teams) t.strictSame(await rowCounts(service, team.id), { emails: 2, jobs: 2 })
  t.ok((await transactions(teams)) < 40)
})

t.test('each send of a group gets its own error', async (t) => {
  const [full, free] = await Promise.all([makeTeam(service, { email_limit: 2 }), makeTeam(service)])
  const replies = await whileLocked(full, async () => {
    const own = [send(full), send(full), send(full), send(full, { from: 'hello@example.net' })]
    // It comes after sends that wait for the lock, and isn't delayed by them.
    t.equal((await send(free)).status, 201)
    return { own }
  })
  const own = await Promise.all(replies.own)
  t.strictSame(statuses(own).toSorted(), [201, 201, 402, 422])
  t.strictSame((await usedBy(service, full.id)).emails, 2)
})

t.test('concurrent sends with one idempotency key store one row', async (t) => {
  const team = await makeTeam(service)
  const replies = await Promise.all(Array.from({ length: 10 }, () => send(team, { idempotency_key: 'k' })))
  t.strictSame(statuses(replies).toSorted(), [...Array(9).fill(200), 201])
  t.equal(new Set(replies.map(({ body }) => body.id)).size, 1)
  t.strictSame(await rowCounts(service, team.id), { emails: 1, jobs: 1 })
})

t.test('a send that can’t be stored only fails itself', async (t) => {
  const teams = await Promise.all(Array.from({ length: 6 }, () => makeTeam(service)))
  await service.database.query(sql.unsafe`
    alter table accepted_emails add constraint unlucky check (subject <> 'Unlucky')`)
  const replies = await Promise.all([
    ...teams.map((team) => send(team)),
    ...teams.slice(0, 2).map((team) => send(team, { subject: 'Unlucky' })),
    ...teams.map((team) => send(team)),
  ])
  await service.database.query(sql.unsafe`alter table accepted_emails drop constraint unlucky`)
  t.strictSame(statuses(replies), [...Array(6).fill(201), 500, 500, ...Array(6).fill(201)])
  for (const team of teams) t.strictSame(await rowCounts(service, team.id), { emails: 2, jobs: 2 })
})

t.test('a team with a locked account doesn’t delay others', async (t) => {
  const stuck = await makeTeam(service)
  const others = await Promise.all(Array.from({ length: 5 }, () => makeTeam(service)))
  const own = await whileLocked(stuck, async () => {
    const waiting = Array.from({ length: 8 }, () => send(stuck))
    const replies = await Promise.all(others.flatMap((team) => [send(team), send(team)]))
    t.ok(replies.every(({ status }) => status === 201))
    return { waiting }
  })
  t.strictSame(statuses(await Promise.all(own.waiting)), Array(8).fill(201))
})

t.test('concurrent WhatsApp sends also share transactions', async (t) => {
  const teams = await Promise.all(Array.from({ length: 5 }, () => makeTeam(service, { whatsapp_limit: 2 })))
  const bodies = await Promise.all(
    teams.map(async (team) => ({ team, body: aMessage((await makeTemplate(service, team.id)).id) })),
  )
  const replies = await Promise.all(
    [1, 2, 3].flatMap(() =>
      bodies.map(({ team, body }) => service.call('POST', '/v1/whatsapp/messages', { key: team.key, body })),
    ),
  )
  t.strictSame(statuses(replies).toSorted(), [...Array(10).fill(201), ...Array(5).fill(402)])
})

/** Posts a report about an email, with this subject. */
const report = (text: string): Promise<Reply> => {
  const ref = { team_id: '0190a1b2-0000-7000-8000-00000000000a', id: '0190a1b2-0000-7000-8000-00000000000b' }
  const to = returnPath(service.deps.secrets, ref, 'bounces.example.com') ?? ''
  return service.call('POST', '/hooks/smtp', {
    raw: new Uint8Array(Buffer.from(`To: ${to}\r\nSubject: ${text}\r\n\r\n`)),
    headers: { Authorization: `Bearer ${SMTP_REPORT_TOKEN}`, 'Content-Type': 'message/rfc822' },
  })
}

t.test('concurrent reports share transactions, but not failures', async (t) => {
  await service.database.query(sql.unsafe`
    alter table reports add constraint unlucky check (strpos(encode(body, 'escape'), 'Unlucky') = 0)`)
  const texts = Array.from({ length: 40 }, (_, index) => (index === 20 ? 'Unlucky' : `Report ${index}`))
  const replies = await Promise.all([...texts, 'Report 0'].map(report))
  await service.database.query(sql.unsafe`alter table reports drop constraint unlucky`)
  const expected = [...texts, ''].map((text) => (text === 'Unlucky' ? 500 : 200))
  t.strictSame(statuses(replies), expected)
  const answers = replies.map(({ body }) => body.status)
  t.equal(answers.filter((answer) => answer === 'repeated').length, 1)
  const stored = await storedReports(service)
  t.equal(stored.length, 39)
  for (const { body } of stored) t.match(String(body), /^To: .*\r\nSubject: Report \d+\r\n\r\n$/)
  const again = await Promise.all(Array.from({ length: 40 }, (_, index) => report(`Later ${index}`)))
  t.ok(again.every(({ status }) => status === 200))
  const batches = await service.database.oneFirst(sql.type(countRow)`
    select count(distinct xmin::text) as count from reports where strpos(encode(body, 'escape'), 'Later') > 0`)
  t.ok(batches < 40, `${batches} transactions`)
  const jobs = await jobsIn(service, 'ingest-report')
  t.ok(jobs.length < 79, `${jobs.length} jobs`)
  const reports = jobs.flatMap(({ report_id, reports = [report_id] }) => reports).toSorted()
  const ids = (await storedReports(service)).map(({ id }) => id)
  t.strictSame(reports, ids, 'each report is in one job')
})
