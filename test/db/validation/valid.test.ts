/**
 * The quick validation accepts only what yup accepts, and everything that the service receives in practice.
 */
import fc from 'fast-check'
import { array, mixed, number, object, string } from 'yup'
import { V1_ROUTES } from '../../../api/v1/routes.ts'
import { emailRow } from '../../../db/messages/emails/emails.sql.ts'
import { address, mailbox, stringMap, text, unsupported, uuid, uuids } from '../../../db/validation/fields.ts'
import { isSurelyValid } from '../../../db/validation/valid.ts'
import { anEmailRow } from '../../support/reports.ts'
import { anEmail } from '../../support/service.ts'
import t from '../../support/tap.ts'

const ID = '0190a1b2-0000-7000-8000-00000000000a'
const odd = fc.oneof(
  ...[null, undefined, '', 'a', 'a@example.org', 'A <a@example.org>', ID, 0, 1.5, -1, Number.NaN, true].map(
    (value) => fc.constant<unknown>(value),
  ),
  fc.array(fc.oneof(fc.string(), fc.emailAddress(), fc.integer(), fc.constant(null)), { maxLength: 3 }),
  fc.dictionary(fc.string(), fc.oneof(fc.string(), fc.integer()), { maxKeys: 3 }),
  fc.string({ maxLength: 300 }),
)

const FIELDS = {
  text: text({ min: 1, max: 5 }),
  uuid: uuid(),
  uuids: uuids(),
  address: address(),
  mailboxes: array(mailbox().required()).min(1).max(2),
  map: stringMap(2),
  unsupported: unsupported(),
  one_of: string().oneOf(['a', 'b']),
  nullable: number().defined().nullable().integer().min(0),
  any: mixed().defined(),
  nested: object({ a: string().required(), list: array(string().defined()).nullable() }),
}

t.test('accepts exactly the values that yup accepts', (t) => {
  fc.assert(
    fc.property(fc.constantFrom(...Object.keys(FIELDS)), odd, (name, value) => {
      const schema = FIELDS[name as keyof typeof FIELDS]
      return isSurelyValid(schema, value) === schema.isValidSync(value, { strict: true })
    }),
    { numRuns: 3_000 },
  )
  const whole = object(FIELDS)
  fc.assert(
    fc.property(
      fc.dictionary(fc.constantFrom(...Object.keys(FIELDS), 'other'), odd),
      (value) => isSurelyValid(whole, value) === whole.isValidSync(value, { strict: true }),
    ),
    { numRuns: 1_000 },
  )
  t.end()
})

t.test('leaves schemas with dependencies to yup', (t) => {
  const dependent = object({
    a: string(),
    b: string().when('a', ([a], schema) => (a ? schema.required() : schema)),
  })
  t.notOk(isSurelyValid(dependent, { b: 'x' }))
  t.notOk(
    isSurelyValid(
      string().test('later', 'no', async () => false),
      'x',
    ),
    'a promise is no yes',
  )
  t.notOk(
    isSurelyValid(
      string().test('faulty', 'no', () => {
        throw new Error('no')
      }),
      'x',
    ),
  )
  t.end()
})

t.test('accepts a send and a database row', (t) => {
  const send = V1_ROUTES.find(({ path }) => path === '/v1/emails')?.body?.schema
  t.ok(send && isSurelyValid(send as typeof emailRow, anEmail()))
  t.notOk(send && isSurelyValid(send as typeof emailRow, anEmail({ subject: 5 })))
  const row = anEmailRow({ variables: { a: 'b' }, tags: ['x'], pending_recipients: ['a@example.org'] })
  t.ok(isSurelyValid(emailRow, row))
  t.notOk(isSurelyValid(emailRow, { ...row, status: 'gone' }))
  t.notOk(isSurelyValid(emailRow, { ...row, html: undefined }))
  t.end()
})
