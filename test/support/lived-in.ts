/**
 * A team as it looks after some weeks: long names, 60 emails at all statuses and waiting ones, contacts with causes of
 * suppression, templates, a broadcast, WhatsApp, a paused sender, dead letters. What pages are looked at with.
 */

import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { record } from '../../db/accounts/audit/record.ts'
import { saveDraft } from '../../db/content/templates/draft.ts'
import { saveTemplate } from '../../db/content/templates/save.ts'
import { DEMO_TEMPLATE } from '../sandbox/whatsapp-magic.ts'
import { recordBounce } from './bounce.ts'
import { insertEmailRows } from './email-rows.ts'
import { pauseSender } from './senders.ts'
import { anEmail, makeTeam, type Reply, type Service, type TestTeam } from './service.ts'
import { aMessage, makeTemplate } from './whatsapp.ts'

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

export type LivedIn = {
  team: TestTeam
  /** An email that bounced; its recipient is suppressed. */
  bounced: string
  recipient: string
  template: string
  message: string
}

const HTML = `<div style="font-family:sans-serif;max-width:560px;margin:auto;padding:24px">
  <h1 style="font-size:22px">Hi {{name}},</h1><p>your invoice of {{amount}} is due on Friday.</p>
  <p><a href="https://example.com/pay" style="background:#d97f00;color:#fff;padding:10px 18px">Pay now</a></p></div>`

/** Emails of the last 30 days at every status, the newest some minutes old. */
async function storeHistory({ database }: Service, team: TestTeam, count: number): Promise<void> {
  for (let at = 0; at < count; at += 1) {
    const time = Date.now() - 300_000 - at * at * 12 * 60_000
    const status = at < 3 ? 'queued' : (STATUSES[at % STATUSES.length] ?? 'sent')
    const row = sql.fragment`
      select ${team.id} as team_id, ${uuidv7({ msecs: time })} as id, ${team.domain_id} as domain_id,
        'Northwind <hello@example.com>' as from_address,
        ${sql.array([PEOPLE[at % PEOPLE.length] ?? ''], 'text')} as to_emails,
        ${SUBJECTS[at % SUBJECTS.length] ?? ''} as subject, '<p>Hello</p>' as html,
        ${at % 3 === 0 ? '["invoice"]' : '[]'}::json as tags, ${status} as status,
        ${new Date(time).toISOString()} as created_at, '' as reply_to`
    await insertEmailRows({ database }, row)
  }
  await database.query(sql.unsafe`
    insert into daily_figures (team_id, channel, day, status, count)
    select ${team.id}, 'email', (now() - make_interval(days => d))::date, s, 
      (case s when 'delivered' then 4000 + 900 * sin(d) when 'sent' then 120 when 'bounced' then 90 + 10 * d
        else 3 end)::int
    from generate_series(0, 29) d, unnest(array['delivered', 'sent', 'bounced', 'complained']) s
    on conflict do nothing`)
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
    insert into contacts (team_id, id, email, identity, status, properties, topic_ids,
      created_at, updated_at)
    select ${id}, gen_random_uuid(), 'subscriber' || n || '@example.net', 'subscriber' || n || '@example.net',
      'subscribed', '{}', '{}', now() - make_interval(hours => n), now() from generate_series(1, 60) n on conflict do nothing`)
}

/** What a call made. @throws Error with the refusal. */
function made({ status, body }: Reply): { id: string } {
  if (status < 300) return body
  throw new Error(JSON.stringify(body))
}

/** Makes the team, with everything in it. */
export async function livedIn(service: Service): Promise<LivedIn> {
  const { call, database, deps } = service
  const team = await makeTeam(service, { plan: 'pro', contact_limit: 2_000 })
  const { key } = team
  await database.query(sql.unsafe`
    update teams set name = 'Northwind Traders International' where id = ${team.id}`)
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
  const what = { recipient, detail: '550 5.1.1 <ana.lindqvist@example.net>: Recipient address rejected' }
  await recordBounce(service, { team_id: team.id, email_id: bounced.id }, what)
  const whatsapp = await makeTemplate(service, team.id, DEMO_TEMPLATE)
  const parameters = Object.fromEntries(whatsapp.slots.map((slot) => [slot, 'Ana']))
  const message = made(
    await call('POST', '/v1/whatsapp/messages', { key, body: aMessage(whatsapp.id, { parameters }) }),
  )
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
  return { team, bounced: bounced.id, recipient, template: template.id, message: message.id }
}
