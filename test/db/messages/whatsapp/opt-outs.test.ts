/** Opt-outs from marketing by their functions: teams, times, events, erased numbers and manual changes. */
import { sql } from 'slonik'
import { string } from 'yup'
import { eraseNumber } from '../../../../db/maintenance/retention/whatsapp-number.ts'
import { optOutsOfTeam } from '../../../../db/messages/whatsapp/opt-outs.sql.ts'
import {
  applyReportedOptOuts,
  changeOptOuts,
  erasedNumber,
  optedOutAmong,
  optInManually,
  optOutManually,
} from '../../../../db/messages/whatsapp/opt-outs.ts'
import type { Tx } from '../../../../db/postgres/pool.ts'
import { row } from '../../../../db/postgres/rows.ts'
import { createSecrets } from '../../../../db/process/secrets.ts'
import { adminCli } from '../../../support/admin.ts'
import { SECRET_KEY } from '../../../support/environment.ts'
import { byCli, makeTeam, world } from '../../../support/service.ts'
import { statementsOf } from '../../../support/statement-count.ts'
import t from '../../../support/tap.ts'
import { makeTemplate, sendWhatsapp, setTaken } from '../../../support/whatsapp.ts'

const { service, database } = await world(t)
const secrets = createSecrets(SECRET_KEY)
const NUMBER = '+15555550101'
const OTHER = '+15555550102'

const at = (second: number): Date => new Date(1_790_000_000_000 + second * 1_000)

const outs = async (team: string) =>
  (await optOutsOfTeam(database, team)).map(({ to, by }) => `${to} ${by}`).toSorted()

const change = (team_id: string, recipient: string, is_out: boolean, second: number) => ({
  ...{ team_id, recipient, is_out, at: at(second), by: 'text' },
})

const apply = (...changes: ReturnType<typeof change>[]) =>
  database.transaction((tx) => changeOptOuts(tx, changes, secrets))

const bodyRow = row({ body: string() })

/** Makes a team with a webhook for all events. @returns the team, and the types and recipients that were published. */
async function withWebhook() {
  const team = await makeTeam(service)
  const cli = adminCli({ DATABASE_URL: service.url })
  await cli.json(['webhook', 'add', team.id, '--url', 'https://hooks.example.com/in', '--types', '*'])
  const published = async () => {
    const rows = await database.any(sql.type(bodyRow)`
      select body from webhook_messages where team_id = ${team.id} order by body::json ->> 'timestamp', id`)
    return rows.map(({ body }) => JSON.parse(body))
  }
  return { team, published }
}

t.test('publishes each effective change of a recipient once', async (t) => {
  const { team, published } = await withWebhook()
  await apply(change(team.id, NUMBER, true, 1), change(team.id, OTHER, true, 1))
  await apply(change(team.id, NUMBER, true, 2))
  t.match(
    (await published()).map(({ type, data }) => [type, data]).toSorted(),
    [NUMBER, OTHER].map((to) => ['whatsapp.opted_out', { to, at: at(1).toISOString(), by: 'text' }]),
  )
  t.equal(await statementsOf(database, (tx) => changeOptOuts(tx, [], secrets)), 0)
})

t.test('an opt-in ends the opt-out of an erased number, and is published with the number', async (t) => {
  const { team, published } = await withWebhook()
  await apply(change(team.id, NUMBER, true, 1))
  await database.transaction((tx) => eraseNumber({ tx, now: at(2), actor: 'cli', secrets }, team.id, NUMBER))
  t.strictSame(await outs(team.id), [], 'no longer listed')
  const isOut = (recipient: string) =>
    database.transaction(
      async (tx) => (await optedOutAmong({ tx, secrets }, [{ team_id: team.id, recipient }])).size,
    )
  t.equal(await isOut(NUMBER), 1)
  t.equal(await isOut(OTHER), 0)
  const before = (await published()).length
  await apply(change(team.id, OTHER, false, 3))
  t.equal((await published()).length, before, 'an opt-in without an opt-out')
  await apply(change(team.id, NUMBER, false, 3))
  t.equal(await isOut(NUMBER), 0)
  t.match((await published()).at(-1), { type: 'whatsapp.opted_in', data: { to: NUMBER } })
  const rows = await database.any(sql.type(row({ recipient: string() }))`
    select recipient from whatsapp_opt_outs where team_id = ${team.id} order by recipient`)
  const erased = erasedNumber(secrets, team.id, NUMBER)
  t.match(erased, /^erased:[0-9a-f]{64}$/)
  t.strictSame(
    rows.map((each) => each.recipient),
    [NUMBER, OTHER, erased],
    'nothing more about the other number',
  )
})

t.test('no messages need no statement', async (t) => {
  const asked = await statementsOf(database, (tx) => optedOutAmong({ tx, secrets }, []))
  t.equal(asked, 0)
})

const report = (changes: Partial<Parameters<typeof applyReportedOptOuts>[1][number]>) =>
  database.transaction((tx) =>
    applyReportedOptOuts(
      tx,
      [
        {
          number: null,
          from: NUMBER.slice(1),
          is_out: true,
          by: 'text',
          reply_to: null,
          occurred_at: at(9),
          ...changes,
        },
      ],
      at(10),
      { secrets },
    ),
  )

t.test('a reply counts for the team of the message, with the number of an erased one', async (t) => {
  const team = await makeTeam(service)
  const template = await makeTemplate(service, team.id)
  const [id = ''] = await sendWhatsapp(service, team, template.id, { to: [OTHER] })
  await setTaken(service, id)
  const replyTo = (provider: string, recipient: string) =>
    database.query(sql.unsafe`
      update whatsapp_messages set provider_message_id = ${provider}, recipient = ${recipient} where id = ${id}`)
  await replyTo('wamid.reply', OTHER)
  t.match(await report({ reply_to: 'wamid.reply' }), [{ kind: 'applied' }])
  t.strictSame(await outs(team.id), [`${OTHER} text`], 'the number that the message was sent to')
  await replyTo('wamid.reply', 'erased')
  await report({ reply_to: 'wamid.reply' })
  t.strictSame(await outs(team.id), [`${NUMBER} text`, `${OTHER} text`])
})

t.test('a report without a reply counts for the teams that wrote within 30 days', async (t) => {
  const [lately, before] = [await makeTeam(service), await makeTeam(service)]
  for (const { team, days } of [
    { team: lately, days: 29 },
    { team: before, days: 31 },
  ]) {
    const template = await makeTemplate(service, team.id)
    const [id = ''] = await sendWhatsapp(service, team, template.id, { to: [NUMBER] })
    await database.query(sql.unsafe`
      update whatsapp_messages set accepted_at = ${sql.timestamp(at(-days * 86_400))} where id = ${id}`)
  }
  await report({ occurred_at: at(0) })
  t.strictSame([await outs(lately.id), await outs(before.id)], [[`${NUMBER} text`], []])
})

t.test('a report that is meant for no team has no effect', async (t) => {
  await makeTeam(service)
  t.match(await report({ from: '15555550199' }), [
    { kind: 'ignored', reason: 'no team wrote to this recipient' },
  ])
})

const manually = (work: (by: ReturnType<typeof byCli> & { secrets: typeof secrets }) => Promise<unknown>) =>
  database.transaction((tx: Tx) => work({ ...byCli(tx), secrets }))

t.test('opts out and in manually, with the actor and an entry in the audit log', async (t) => {
  const { id } = await makeTeam(service)
  t.match(await manually((by) => optOutManually(by, id, '+1 555 555 0101')), {
    to: NUMBER,
    by: 'cli',
    at: /Z$/,
  })
  await manually((by) => optOutManually({ ...by, actor: null }, id, OTHER))
  t.strictSame(await outs(id), [`${NUMBER} cli`, `${OTHER} service`])
  t.strictSame(await manually((by) => optInManually(by, id, NUMBER)), { to: NUMBER, opted_out: false })
  t.strictSame(await outs(id), [`${OTHER} service`])
  const entries = await database.any(sql.type(row({ action: string(), subject: string() }))`
    select action, subject from audit_entries where team_id = ${id} and action like 'whatsapp.opt%' order by id`)
  t.strictSame(
    entries.map(({ action, subject }) => [action, subject]),
    [
      ['whatsapp.opt-out', NUMBER],
      ['whatsapp.opt-in', NUMBER],
    ],
  )
  await t.rejects(
    manually((by) => optOutManually(by, id, '555')),
    { code: 'bad_request', message: /555 .*E\.164/ },
  )
})
