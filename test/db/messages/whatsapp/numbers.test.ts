/** The default number, which a worker stores at its start, and the encrypted credentials of the others. */
import { sql } from 'slonik'
import { string } from 'yup'
import { lockSealedNumbers } from '../../../../db/messages/whatsapp/numbers.sql.ts'
import {
  openCredential,
  openTokens,
  recordDefaultNumber,
  resealNumbers,
  sealCredential,
} from '../../../../db/messages/whatsapp/numbers.ts'
import { row } from '../../../../db/postgres/rows.ts'
import { startService } from '../../../support/service.ts'
import t from '../../../support/tap.ts'
import { makeNumber } from '../../../support/whatsapp-numbers.ts'

const service = await startService(t)
const { database } = service
const { secrets } = service.deps

const stored = () =>
  database.any(sql.type(row({ name: string(), phone_number_id: string(), account_id: string().nullable() }))`
    select name, phone_number_id, account_id from whatsapp_numbers order by name`)

t.test('a worker stores the number of its settings', async (t) => {
  const name = 'default'
  await recordDefaultNumber(database, { phone_number_id: '100', account_id: null })
  t.strictSame(await stored(), [{ name, phone_number_id: '100', account_id: null }])
  const settings = { phone_number_id: '101', account_id: '200' }
  await recordDefaultNumber(database, settings)
  t.strictSame(await stored(), [{ name, ...settings }])
})

t.test('encrypts all credentials again, or names the undecryptable one', async (t) => {
  const reseal = () => database.transaction((tx) => resealNumbers({ tx, secrets }))
  t.equal(await reseal(), 0)
  const given = { account_id: '1', token: 'a token' }
  await makeNumber(service, { ...given, name: 'plain', phone_number_id: '201' })
  await makeNumber(service, { ...given, name: 'signed', phone_number_id: '202', app_secret: 'a secret' })
  const byName = async () => new Map((await lockSealedNumbers(database)).map((row) => [row.name, row]))
  const before = await byName()
  t.equal(await reseal(), 2)
  const after = await byName()
  for (const [name, { access_token }] of after) {
    t.notOk(before.get(name)?.access_token.equals(access_token), name)
    t.equal(openCredential(secrets, name, 'access_token', access_token).toString(), 'a token')
  }
  t.equal(after.get('plain')?.app_secret, null)
  const secret = after.get('signed')?.app_secret ?? Buffer.alloc(0)
  t.equal(openCredential(secrets, 'signed', 'app_secret', secret).toString(), 'a secret')
  t.throws(() => openCredential(secrets, 'signed', 'access_token', secret), 'it is for another use')
  await database.query(sql.unsafe`
    update whatsapp_numbers set access_token = (select access_token from whatsapp_numbers where name = 'plain')
    where name = 'signed'`)
  await t.rejects(reseal(), { code: 'bad_request', message: /signed/ })
})

t.test('decrypts the token of each number once', async (t) => {
  const number = (
    phone_number_id: string,
    number_name: string | null,
    sealedFor: string | null,
    text = '',
  ) => ({
    ...{ phone_number_id, number_name },
    access_token:
      sealedFor === null ? null : sealCredential(secrets, sealedFor, 'access_token', Buffer.from(text)),
  })
  const numbers = [
    ...[number('1', 'a', 'a', 'first'), number('1', 'a', 'a', 'second'), number('2', 'b', 'a')],
    ...[number('3', null, 'c'), number('4', 'd', null)],
  ]
  const tokens = [...openTokens(secrets, numbers)]
  t.strictSame(tokens, [
    ['1', 'first'],
    ['2', null],
  ])
})

t.test("a worker doesn't start with the ID of another number", async (t) => {
  await database.query(sql.unsafe`
    insert into whatsapp_numbers (name, phone_number_id, account_id, access_token, created_at)
    values ('acme', '102', '200', '', now())`)
  await t.rejects(
    recordDefaultNumber(database, { phone_number_id: '102', account_id: null }),
    /WHATSAPP_PHONE_NUMBER_ID .* acme/,
  )
})
