/**
 * Each field of each body under /v1: values of a wrong type are rejected and named, and required fields are
 * required. The table is the API's promise. A field that a route accepts and the table doesn't have fails.
 */
import { parseBody } from '../../api/http/input.ts'
import { V1_ROUTES } from '../../api/v1/routes.ts'
import { readItems } from '../../db/audience/contacts/upsert.ts'
import { RequestError, resultOrError } from '../../db/errors.ts'
import { exampleMoment } from '../../db/validation/moments.ts'
import t from '../support/tap.ts'

const UUID = '0190a000-0000-7000-8000-000000000000'

/** Invalid addresses, with or without names. */
const NO_ADDRESSES = ['', 'nobody', 'a@b', 'a@example.org, b@example.org', `${'a'.repeat(65)}@example.org`]

/** For each type a valid value, followed by invalid ones. */
const VALUES = {
  text: ['Hello', 5, true, [], {}],
  sender: ['hello@example.com', 5, true, [], {}],
  email: ['ana@example.org', 5, true, [], {}, ...NO_ADDRESSES, 'Name <a@example.org>', 'a\0@example.org'],
  mailbox: [
    'Ana <ana@example.org>',
    5,
    true,
    [],
    {},
    ...NO_ADDRESSES,
    'G: a@x.test;',
    'a@x.test\r\nBcc: b@x.test',
    '\0@x.test',
    `${'N'.repeat(257)} <a@x.test>`,
  ],
  number: ['+15555550101', 5, true, [], {}],
  uuid: [UUID, 5, true, [], {}, 'x', UUID.slice(1)],
  time: [
    ...[new Date(Date.now() + 3_600_000).toISOString(), 5, true, [], {}, '', 'tomorrow', '2026-01-31'],
    ...['2026-01-31T09:00:00', '2026-02-30T00:00:00Z'],
  ],
  integer: [5, '5', true, [], {}, 1.5],
  /** How long it can be sent, in seconds. */
  seconds: [60, '60', true, [], {}, 60.5, 59, 86_401, 0, -1],
  map: [{ a: 'b' }, 'x', 5, ['x'], { a: 5 }, { a: null }, { a: {} }],
  file: [
    { filename: 'a.txt', content: 'YQ==' },
    5,
    'x',
    [],
    { filename: 5, content: 'YQ==' },
    { filename: 'a.txt' },
  ],
  condition: [
    { property: 'a', op: 'eq', value: 'b' },
    5,
    'x',
    [],
    { property: 5, op: 'eq', value: 'b' },
    { op: 'eq' },
  ],
  /** Not supported. */
  none: [undefined, 'x', ['x'], 60],
  send_time: [undefined, 'x', ['x'], '2026-01-31T09:00:00Z'],
  begin_time: [undefined, 'x', ['x'], '2026-01-31T09:00:00Z'],
  /** The contact's current status is accepted: contacts.test.ts, bulk.test.ts. */
  claim: [undefined],
} as const satisfies Record<string, readonly unknown[]>

/** The errors whose wording has to help. */
const WORDS: Readonly<Record<string, string>> = {
  time: `must be an RFC 3339 time with a time zone, such as ${exampleMoment(new Date())}`,
  seconds: 'must be a whole number of seconds from 60 to 86400',
  none: 'is not supported',
  send_time: 'is called scheduled_at here. Use that name for the time to send at',
  begin_time: 'is called send_at here. Use that name for the time to start at',
  'mailbox[]': 'must be an array of email addresses, such as ["name@example.com"]',
}

/** Fields as other services spell them, with their names here. */
const SEND_SPELLINGS = 'scheduledAt:=scheduled_at sendAt:=scheduled_at templateId:=template_id'
const BEGIN_SPELLINGS = 'scheduledAt:=send_at sendAt:=send_at'

const SEND = `from!:sender to!:mailbox[] subject!:text html:text template_id:uuid variables:map text:text headers:map
  reply_to:sender tags:text[] idempotency_key:text attachments:file[]
  cc:mailbox[] bcc:mailbox[] scheduled_at:time expires_in:seconds send_at:send_time
  replyTo:=reply_to ${SEND_SPELLINGS}`
const WHATSAPP = `template_id!:uuid to!:number[] parameters:map idempotency_key:text
  cc:none bcc:none scheduled_at:time expires_in:seconds send_at:send_time ${SEND_SPELLINGS}`
const CONTACT = 'properties:map status:claim subscribed:claim unsubscribed:claim emailBlacklisted:claim'
const BROADCAST = `name!:text template_id!:uuid from!:sender subject!:text topic_ids!:uuid[] reply_to:sender
  exclude_topic_ids:uuid[] where:condition[] variables:map headers:map tags:text[] rate_per_minute:integer send_at:time
  cc:none bcc:none attachments:none scheduled_at:begin_time expires_in:none
  templateId:=template_id replyTo:=reply_to topicIds:=topic_ids ${BEGIN_SPELLINGS}`

const BODIES: Record<string, string> = {
  'POST /v1/contacts': `email!:email topic_ids:uuid[] topicIds:=topic_ids ${CONTACT}`,
  'PATCH /v1/contacts/:email': `topic_ids:uuid[] topicIds:=topic_ids ${CONTACT}`,
  'POST /v1/contacts/bulk': `email!:email ${CONTACT}`,
  'POST /v1/marketing/unsubscribe': 'email!:email topic_ids:uuid[] topicIds:=topic_ids',
  'POST /v1/emails': SEND,
  'POST /v1/emails/batch': SEND,
  'PATCH /v1/emails/:id': 'scheduled_at!:time',
  'PATCH /v1/whatsapp/messages/:id': 'scheduled_at!:time',
  'POST /v1/whatsapp/messages': WHATSAPP,
  'POST /v1/whatsapp/messages/batch': WHATSAPP,
  'POST /v1/broadcasts': `${BROADCAST} idempotency_key:text`,
  'PATCH /v1/broadcasts/:id': BROADCAST.replaceAll('!', ''),
  'POST /v1/broadcasts/:id/test': `to!:mailbox[] contact:email
    cc:none bcc:none attachments:none send_at:none scheduled_at:none expires_in:none
    scheduledAt:none sendAt:none`,
  'POST /v1/broadcasts/:id/send': `send_at:time cc:none bcc:none attachments:none scheduled_at:begin_time expires_in:none ${BEGIN_SPELLINGS}`,
}

type Field = {
  name: string
  isRequired: boolean
  right: unknown
  wrong: unknown[]
  words: string | undefined
}

function fieldOf(words: string): Field {
  const [, name = '', mark, other, type = '', list] = /^(\w+)(!?):(=?)(\w+)(\[\])?$/.exec(words) ?? []
  if (other) {
    const [right, ...wrong] = VALUES.none
    return { name, isRequired: false, right, wrong, words: `is called ${type} here. Use that name` }
  }
  const [one, ...others] = VALUES[type as keyof typeof VALUES]
  const right = list ? [one] : one
  const wrong = list ? ['x', 5, {}, [null], ...others.map((each) => [each])] : [...others]
  return { name, isRequired: mark === '!', right, wrong, words: WORDS[type + (list ?? '')] }
}

const written = (value: unknown): string => JSON.stringify(value) ?? 'nothing'

for (const { method, path, body } of V1_ROUTES) {
  if (!body) continue
  const route = `${method} ${path}`
  t.test(route, async (t) => {
    const listed = BODIES[route]
    if (listed === undefined) return void t.fail(`add the fields of ${route} to BODIES in this file`)
    const fields = listed.split(/\s+/).map(fieldOf)
    t.strictSame(
      Object.keys(body.schema.fields).sort(),
      fields.map(({ name }) => name).sort(),
      'BODIES in this file lists the fields of each body',
    )
    /** Returns the error of a body, or of the only item in a batch. */
    const faultOf = (item: object): RequestError | null => {
      const sent = JSON.stringify(body.batch ? { [body.batch.field]: [item] } : item)
      const judged = resultOrError(() => {
        // A worker validates the items of a bulk upsert.
        return route.endsWith('/bulk')
          ? readItems(sent)[0]
          : [parseBody<unknown>(body, Buffer.from(sent))].flat()[0]
      })
      return judged instanceof RequestError ? judged : null
    }
    const right = Object.fromEntries(fields.map((field) => [field.name, field.right]))
    const base = 'html' in right ? { ...right, html: '<p>Hello</p>' } : right
    t.equal(faultOf(base), null, 'all that is right')
    for (const { name, isRequired, wrong, words } of fields) {
      for (const value of wrong) {
        const { code = '', message = '' } = faultOf({ ...base, [name]: value }) ?? {}
        t.equal(code, 'bad_request', `${name}: ${written(value)}`)
        const [, rest] = new RegExp(`^(?:\\w+\\[0\\]\\.)?${name}\\b(.*)`).exec(message) ?? []
        t.type(rest, 'string', `${name}: ${written(value)}: ${message}`)
        if (words && rest?.startsWith(' ')) t.equal(rest, ` ${words}.`)
      }
      for (const value of [undefined, null]) {
        const fault = faultOf({ ...base, [name]: value })
        if (isRequired)
          t.match(fault?.message, new RegExp(`\\b${name} is required`), `${name}: ${written(value)}`)
        else t.equal(fault, null, `${name}: ${written(value)}`)
      }
    }
  })
}
