/** The channel of WhatsApp messages: its tables, its queue, and how its messages are found. */
import { sql } from 'slonik'
import { anyText, anyUuid, type Channel, ofTestTeam, timed } from './channel.sql.ts'
import { WHATSAPP_FACTS } from './whatsapp.ts'

export const WHATSAPP: Channel<'deliver-whatsapp'> = {
  ...WHATSAPP_FACTS,
  job: 'deliver-whatsapp',
  test: false,
  payload: {
    of: ({ team_id, id }) => ({ team_id, message_id: id }),
    ref: ({ team_id, message_id }) => ({ team_id, id: message_id }),
  },
  job_of: sql.fragment`case when ${ofTestTeam} then 'deliver-test-whatsapp'
    when phone_number_id is not null then 'deliver-whatsapp-number'
    when parts then 'deliver-whatsapp-parts' else 'deliver-whatsapp' end`,
  queued_again: sql.fragment`, requeues = m.requeues + 1`,
  rows: sql.fragment`whatsapp_messages`,
  ...timed,
  undelivered: sql.fragment`(status = 'queued' and accepted_at is null)`,
  requests: {
    rows: sql.fragment`whatsapp_requests`,
    named_by: sql.fragment`request_id`,
    content: sql.fragment`parameters`,
  },
  templates: sql.fragment`whatsapp_templates`,
  events: sql.fragment`whatsapp_events`,
  message: sql.fragment`message_id`,
  further: { columns: sql.fragment`, code`, types: { code: 'text' } },
  given_up_as: null,
  sender_of: sql.fragment`phone_number_id`,
  customers: sql.fragment`true`,
  broadcast: sql.fragment`null::uuid`,
  refused: sql.fragment`(status = 'failed' and accepted_at is null and not exists (
    select from whatsapp_events v
    where v.team_id = m.team_id and v.message_id = m.id and v.kind = 'unknown'))`,
  timed_out: sql.fragment`false`,
  emptied: sql.fragment`exists (
    select from whatsapp_requests r join whatsapp_templates t on t.team_id = r.team_id and t.id = r.template_id
    where r.team_id = m.team_id and r.id = m.request_id and r.parameters::text = '{}' and t.slots <> '{}')`,
  findInTeam: ({ team, uuids, texts }) => sql.fragment`
    select id from whatsapp_messages
    where team_id = ${team} and (id = ${anyUuid(uuids)} or provider_message_id = ${anyText(texts)})
    union all
    select m.id from whatsapp_requests r
    join whatsapp_messages m on m.team_id = r.team_id and m.request_id = r.id
    where r.team_id = ${team} and (r.idempotency_key = ${anyText(texts)} or r.http_request_id = ${anyText(texts)})`,
  findAnywhere: ({ uuids, texts }) => sql.fragment`
    select team_id, id from whatsapp_messages where id = ${anyUuid(uuids)}
    union select team_id, id from whatsapp_messages where provider_message_id = ${anyText(texts)}
    union
    select m.team_id, m.id from whatsapp_requests r
    join whatsapp_messages m on m.team_id = r.team_id and m.request_id = r.id
    where r.http_request_id = ${anyText(texts)}
    union
    select m.team_id, m.id from whatsapp_requests r
    join whatsapp_messages m on m.team_id = r.team_id and m.request_id = r.id
    where r.idempotency_key = ${anyText(texts)}`,
  to_numbers: ({ team, numbers, limit }) => sql.fragment`
    select m.id, m.recipient, r.template_id,
      case when m.was_sent and m.status = 'queued' then 'sent' else m.status end as status, m.created_at
    from whatsapp_messages m join whatsapp_requests r on r.team_id = m.team_id and r.id = m.request_id
    where m.team_id = ${team} and m.recipient = ${anyText(numbers)} order by m.id desc limit ${limit}`,
}

/** Messages with content unknown to version 0.1.0. Same rows and number, but a queue unknown to it. */
export const PARTS_WHATSAPP: Channel<'deliver-whatsapp-parts'> = {
  ...WHATSAPP,
  job: 'deliver-whatsapp-parts',
}

/** Messages of numbers other than the default one: the same rows, but each number is its own sender. */
export const NUMBER_WHATSAPP: Channel<'deliver-whatsapp-number'> = {
  ...WHATSAPP,
  job: 'deliver-whatsapp-number',
  payload: {
    of: ({ team_id, id, sender }) => ({ team_id, message_id: id, phone_number_id: sender ?? '' }),
    ref: ({ team_id, message_id }) => ({ team_id, id: message_id }),
  },
}

/** Messages of test teams: the same rows, and no provider. */
export const TEST_WHATSAPP: Channel<'deliver-test-whatsapp'> = {
  ...WHATSAPP,
  title: 'Simulated WhatsApp',
  job: 'deliver-test-whatsapp',
  test: true,
  payload: {
    of: ({ team_id, id }) => ({ team_id, message_id: id, test: true }),
    ref: ({ team_id, message_id }) => ({ team_id, id: message_id }),
  },
}
