/**
 * The data of an active team for checks of all pages: long names, 60 emails with every status and waiting
 * ones, contacts with different suppressions, templates, WhatsApp, a failing webhook and background jobs.
 * Also a paused sender, a worker and parked reports.
 */
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { record } from '../../db/accounts/audit/record.ts'
import { displayPrefix } from '../../db/accounts/credentials/token.ts'
import { insertRejectedCalls } from '../../db/accounts/rejections/refusals.sql.ts'
import { saveDraft } from '../../db/content/templates/draft.ts'
import { saveTemplate } from '../../db/content/templates/save.ts'
import { addEndpoint } from '../../db/messages/webhooks/endpoints.ts'
import { idRow } from '../../db/postgres/rows.ts'
import { DEMO_TEMPLATE } from '../sandbox/whatsapp-magic.ts'
import { recordBounce } from './bounce.ts'
import { insertEmailRows } from './email-rows.ts'
import { storeOperatorData } from './lived-in-operator.ts'
import { pauseSender } from './senders.ts'
import { anEmail, makeTeam, type Reply, type Service, type TestTeam } from './service.ts'
import { uuidAt } from './uuid-sql.ts'
import { aMessage, makeTemplate } from './whatsapp.ts'
import { makeDefaultNumber } from './whatsapp-numbers.ts'

type Template = Awaited<ReturnType<typeof makeTemplate>>

const SUBJECTS = [
  'Your invoice 2026-1184 from Northwind Traders International GmbH & Co. KG is ready',
  'Reset your password',
  'Your parcel is on its way',
  'Welcome to Northwind',
  'We could not charge your card ending in 4242, and what to do about it before Friday',
]
const PEOPLE = [
  'ana.lindqvist@example.net',
  'bartholomew.featherstonehaugh-cholmondeley@customer-relations.example.org',
  'chen.wei@example.cn',
  'd@example.org',
  'eleni.papadopoulou@mail.example.gr',
]
const STATUSES = ['delivered', 'delivered', 'opened', 'delivered', 'clicked', 'sent', 'bounced', 'delivered']

const REJECTED = [
  { method: 'POST', route: '/v1/emails', code: 'bad_request', message: 'to[0] must be an email address' },
  { method: 'GET', route: '/v1/emails/:id', code: 'not_found', message: 'No email has this ID' },
  { method: 'POST', route: '/v1/contacts', code: 'bad_request', message: 'email is required' },
] as const

export type LivedIn = {
  team: TestTeam
  /** An email that bounced. Its recipient is suppressed. */
  bounced: string
  recipient: string
  template: string
  message: string
  whatsappTemplate: string
  webhook: string
  /** A message to the webhook. */
  event: string
  report: string
  job: string
}

const HTML = `<div style="font-family:sans-serif;max-width:560px;margin:auto;padding:24px">
  <h1 style="font-size:22px">Hi {{name}},</h1><p>your invoice of {{amount}} is due on Friday.</p>
  <p><a href="https://example.com/pay" style="background:#d97f00;color:#fff;padding:10px 18px">Pay now</a></p></div>`

/** Stores emails of the last 30 days with every status from sent on. The newest is some minutes old. */
async function storeHistory({ database }: Service, team: TestTeam, count: number): Promise<void> {
  for (let at = 0; at < count; at += 1) {
    const time = Date.now() - 300_000 - at * at * 12 * 60_000
    const status = STATUSES[at % STATUSES.length] ?? 'sent'
    const row = sql.fragment`
      select ${team.id} as team_id, ${uuidv7({ msecs: time })} as id, ${team.domain_id} as domain_id,
        'Northwind <hello@example.com>' as from_address,
        ${sql.array([PEOPLE[at % PEOPLE.length || (at < 20 ? 1 : 0)] ?? ''], 'text')} as to_emails,
        ${SUBJECTS[at % SUBJECTS.length] ?? ''} as subject, '<p>Hello</p>' as html,
        ${at % 3 === 0 ? '["invoice"]' : '[]'}::json as tags, ${status} as status,
        ${new Date(time).toISOString()} as created_at, '' as reply_to`
    await insertEmailRows({ database }, row)
  }
  await database.query(sql.unsafe`
    insert into email_events (team_id, email_id, event_key, kind, occurred_at, detail)
    select team_id, id, uuid_send(gen_random_uuid()), 'bounced', created_at,
      (array['552 5.2.2 Over quota', '452 4.2.2 Mailbox full', '550 5.7.1 Message rejected as spam'])[1 + row_number() over () % 3]
    from email_states where team_id = ${team.id} and status = 'bounced'`)
}

async function storeAudience({ call, database }: Service, { id, key }: TestTeam): Promise<void> {
  const topic = { id: uuidv7() }
  await database.query(sql.unsafe`
    insert into topics (team_id, id, name, created_at) values (${id}, ${topic.id}, 'Product news', now())`)
  for (const [at, email] of PEOPLE.entries()) {
    const properties = { name: email.split('@')[0] ?? '', city: 'Thessaloniki', phone: `+4366412345${at}0` }
    await call('POST', '/v1/contacts', {
      key,
      body: { email, properties, topic_ids: at % 2 ? [] : [topic.id] },
    })
  }
  await database.query(sql.unsafe`
    update contacts set created_at = now() - interval '40 days', updated_at = now() - interval '3 days'
    where team_id = ${id}`)
  await database.query(sql.unsafe`
    insert into contacts (team_id, id, email, identity, status, properties, topic_ids,
      created_at, updated_at)
    select ${id}, gen_random_uuid(), 'subscriber' || n || '@example.net', 'subscriber' || n || '@example.net',
      'subscribed', '{}', '{}', now() - interval '41 days' - make_interval(hours => n), now() - interval '41 days' from generate_series(1, 60) n on conflict do nothing`)
}

/** Deletes the jobs of these messages. */
const removeJobs = (database: Service['database'], ids: readonly string[]) =>
  database.query(sql.unsafe`delete from pgboss.job where id = any(${sql.array([...ids], 'uuid')})`)

/** Stores WhatsApp messages of every status. The newest is rejected. @returns its id. */
async function storeWhatsapp({ call, database }: Service, { key }: TestTeam, template: Template) {
  const parameters = Object.fromEntries(template.slots.map((slot) => [slot, 'Ana']))
  const to = Array.from({ length: 12 }, (_, at) => `+155555501${10 + at}`)
  const body = aMessage(template.id, { parameters, to, idempotency_key: 'order-2026-1184' })
  const { data } = made<{ data: { id: string }[] }>(
    await call('POST', '/v1/whatsapp/messages', { key, body }),
  )
  const ids = data.map(({ id }) => id)
  const failed = ids.at(-1) ?? ''
  await database.query(sql.unsafe`
    update whatsapp_messages set status = (array['read', 'delivered', 'sent', 'failed'])[1 + position % 4]
    where id = any(${sql.array(ids, 'uuid')}) and position > 1`)
  await removeJobs(database, ids.slice(2))
  await database.query(sql.unsafe`
    insert into whatsapp_events (team_id, message_id, event_key, kind, occurred_at, detail, code)
    select team_id, id, uuid_send(gen_random_uuid()), kind, now(), detail, code from whatsapp_messages
    cross join (values ('accepted', '', null), ('failed', 'Message undeliverable', '131026')) as e (kind, detail, code)
    where id = ${failed}`)
  return failed
}

const HOOK = 'https://hooks.northwind-traders.example.com/incoming/heliograph/events'

/** Stores a webhook that worked and now returns errors: 60 messages to it, each with an attempt. */
async function storeWebhook({ database, deps }: Service, { id }: TestTeam) {
  const by = { now: deps.clock(), actor: 'ana@example.com', secrets: deps.secrets, allowed: [] }
  const fields = {
    url: HOOK,
    name: 'Order system',
    types: ['email.delivered', 'email.bounced', 'contact.suppressed'],
  }
  const endpoint = await database.transaction((tx) => addEndpoint({ tx, ...by }, id, fields))
  await database.query(sql.unsafe`
    update webhook_endpoints set created_at = now() - interval '50 days', failing_since = now() - interval '3 minutes', last_success_at = now() - interval '4 minutes'
    where id = ${endpoint.id}`)
  await database.query(sql.unsafe`
    with message as (
      insert into webhook_messages (team_id, id, endpoint_id, event_id, type, body, status, created_at)
      select ${id}, ${uuidAt(sql.fragment`now() - make_interval(mins => n)`)}, ${endpoint.id}, ${uuidAt(sql.fragment`now() - make_interval(mins => n, secs => 1)`)},
        (array['email.delivered', 'email.bounced'])[1 + n % 2],
        '{"type": "email.bounced", "data": {"to": ["ana.lindqvist@example.net"]}}',
        case when n < 4 then 'failed' else 'delivered' end, now() - make_interval(mins => n)
      from generate_series(1, 60) n returning *
    )
    insert into webhook_events (
      team_id, endpoint_id, event_key, message_id, occurred_at, status, ms, detail, counts, kind)
    select team_id, endpoint_id, uuid_send(id), id, created_at, case status when 'failed' then 503 else 200 end, 184,
      case status when 'failed' then '<html><body><h1>503 Service Unavailable</h1>No server is available to handle this'
        else '' end, true, 'attempt'
    from message`)
  const event = sql.type(idRow)`
    select event_id as id from webhook_messages where endpoint_id = ${endpoint.id} order by id desc limit 1`
  return { webhook: endpoint.id, event: await database.oneFirst(event) }
}

/** Stores the rejected calls of a client that is being written. */
const storeRejections = ({ database }: Service, { id, key }: TestTeam) =>
  database.transaction((tx) =>
    insertRejectedCalls(
      tx,
      REJECTED.map((call, at) => {
        const created_at = new Date(Date.now() - (4 + at) * 7 * 60_000)
        const ids = { id: uuidv7({ msecs: created_at.getTime() }), http_request_id: uuidv7() }
        return {
          team_id: id,
          ...ids,
          ...call,
          key_prefix: displayPrefix(key),
          created_at: created_at.toISOString(),
        }
      }),
    ),
  )

/** Returns the body of a call that created something. @throws Error with the response of a failed call. */
function made<B = { id: string }>({ status, body }: Reply): B {
  if (status < 300) return body
  throw new Error(JSON.stringify(body))
}

/** Creates the team with all of its data. */
export async function livedIn(service: Service): Promise<LivedIn> {
  const { call, database, deps } = service
  const team = await makeTeam(service, { plan: 'pro', contact_limit: 2_000 })
  const { key } = team
  await database.query(sql.unsafe`
    with team as (
      update teams set name = 'Northwind Traders International', created_at = now() - interval '60 days' where id = ${team.id}
    ), domain as (
      update domains set created_at = now() - interval '60 days', verified_at = now() - interval '60 days'
      where team_id = ${team.id}
    )
    update api_keys set created_at = now() - interval '59 days', last_used_at = date_trunc('hour', now())
    where team_id = ${team.id}`)
  await storeHistory(service, team, 60)
  await storeAudience(service, team)
  const [recipient = ''] = PEOPLE
  const template = await database.transaction((tx) =>
    saveTemplate({ tx, now: deps.clock(), actor: 'ana@example.com' }, team.id, {
      name: 'Invoice reminder',
      html: HTML,
      text: 'Hi {{name}}, {{amount}} is due.',
    }),
  )
  await database.transaction((tx) =>
    saveDraft(
      { tx, now: deps.clock(), actor: 'bartholomew.featherstonehaugh@example.com' },
      team.id,
      template.id,
      {
        html: HTML.replace('is due on Friday', 'of {{number}} is due on Friday'),
        text: 'Hi {{name}}, {{amount}} is due.',
        seen: template.version_id,
      },
    ),
  )
  const bounced = made(
    await call('POST', '/v1/emails', {
      key,
      body: anEmail({
        to: [recipient],
        subject: SUBJECTS[0],
        template_id: template.id,
        html: undefined,
        variables: { name: 'Ana', amount: '€ 120.00' },
        tags: ['invoice'],
      }),
    }),
  )
  await removeJobs(database, [bounced.id])
  const what = { recipient, detail: '550 5.1.1 <ana.lindqvist@example.net>: Recipient address rejected' }
  await recordBounce(service, { team_id: team.id, email_id: bounced.id }, what)
  for (const to of PEOPLE.slice(1, 3))
    made(await call('POST', '/v1/emails', { key, body: anEmail({ to: [to] }) }))
  await storeRejections(service, team)
  await makeDefaultNumber(service, { phone_number_id: '15550100001', account_id: '15550100000' })
  const whatsapp = await makeTemplate(service, team.id, DEMO_TEMPLATE)
  await database.query(sql.unsafe`
    update whatsapp_templates set created_at = now() - interval '50 days', synced_at = now() - interval '40 minutes'
    where id = ${whatsapp.id}`)
  await database.transaction((tx) =>
    pauseSender(
      tx,
      { key: 'smtp:relay.example.com:587', ceiling: 10 },
      300,
      '421 4.7.0 Too many connections',
    ),
  )
  const by = { tx: database, now: deps.clock(), actor: 'ana@example.com' }
  await record(by, { team_id: team.id, action: 'template.update', subject: template.id })
  return {
    ...{ team, bounced: bounced.id, recipient, template: template.id, whatsappTemplate: whatsapp.id },
    message: await storeWhatsapp(service, team, whatsapp),
    ...(await storeWebhook(service, team)),
    ...(await storeOperatorData(service, team)),
  }
}
