/** Rows of the numbers that WhatsApp messages are sent from. */
import { sql } from 'slonik'
import { mixed, object, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { row, rowsOf } from '../../postgres/rows.ts'

/** The number of the workers' settings. */
const DEFAULT_NUMBER = 'default'

const namedRow = row({ name: string() })

/** The name of the number that isn't the default one and has this id; null without one. */
export const otherNumberOfId = async (tx: Tx, phoneNumberId: string): Promise<string | null> =>
  (
    await tx.maybeOne(sql.type(namedRow)`
      select name from whatsapp_numbers
      where phone_number_id = ${phoneNumberId} and name <> ${DEFAULT_NUMBER}`)
  )?.name ?? null

/** Stores the default number, if it isn't stored like this. */
export const storeDefaultNumber = (
  tx: Tx,
  { phone_number_id, account_id }: { phone_number_id: string; account_id: string | null },
) =>
  tx.query(sql.type(object())`
    insert into whatsapp_numbers as n (name, phone_number_id, account_id, created_at)
    values (${DEFAULT_NUMBER}, ${phone_number_id}, ${account_id}, now())
    on conflict (name) do update set
      phone_number_id = excluded.phone_number_id, account_id = excluded.account_id
    where (n.phone_number_id, n.account_id)
      is distinct from (excluded.phone_number_id, excluded.account_id)`)

const sealedRow = row({
  name: string(),
  access_token: mixed<Buffer>(),
  app_secret: mixed<Buffer>().nullable(),
})
export type SealedNumber = { name: string; access_token: Buffer; app_secret: Buffer | null }

/** The sealed credentials of every number that has some, locked until the transaction ends. */
export const lockSealedNumbers = (tx: Tx): Promise<readonly SealedNumber[]> =>
  tx.any(sql.type(sealedRow)`
    select name, access_token, app_secret from whatsapp_numbers
    where access_token is not null order by name for update`)

/** Stores credentials that were sealed with another key. */
export async function updateSealedNumbers(tx: Tx, rows: readonly SealedNumber[]): Promise<void> {
  const types = { name: 'text', access_token: 'bytea', app_secret: 'bytea' }
  await tx.query(sql.type(object())`
    update whatsapp_numbers n set access_token = k.access_token, app_secret = k.app_secret
    from ${rowsOf('k', types, rows)}
    where n.name = k.name`)
}

const idRow = row({ phone_number_id: string() })

/** The numbers that an operator has paused. */
export const pausedNumbers = (tx: Tx) =>
  tx.anyFirst(sql.prepared('paused_whatsapp_numbers', idRow)`
    select phone_number_id from whatsapp_numbers where paused_at is not null`)
