/** The number that a worker stores at its start. */
import { sql } from 'slonik'
import { object, string } from 'yup'
import { recordDefaultNumber } from '../../../../db/messages/whatsapp/numbers.ts'
import { startService } from '../../../support/service.ts'
import t from '../../../support/tap.ts'

const { database } = await startService(t)

const numberRow = object({
  name: string().defined(),
  phone_number_id: string().defined(),
  account_id: string().defined().nullable(),
})
const stored = () =>
  database.any(sql.type(numberRow)`
    select name, phone_number_id, account_id from whatsapp_numbers order by name`)

t.test('a worker stores the number of its settings', async (t) => {
  const name = 'default'
  await recordDefaultNumber(database, { phone_number_id: '100', account_id: null })
  t.strictSame(await stored(), [{ name, phone_number_id: '100', account_id: null }])
  const settings = { phone_number_id: '101', account_id: '200' }
  await recordDefaultNumber(database, settings)
  t.strictSame(await stored(), [{ name, ...settings }])
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
