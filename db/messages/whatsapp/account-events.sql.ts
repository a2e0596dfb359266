/** Meta's latest events about WhatsApp accounts and numbers, one per kind. */
import { sql } from 'slonik'
import { object, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { row, rowsOf } from '../../postgres/rows.ts'

/** `number`: its digits, empty for an event about the account. `limit`: the number's new messaging limit. */
export type AccountEvent = {
  account_id: string
  field: string
  number: string
  detail: string
  occurred_at: Date
  limit: string | null
}

const EVENT = {
  ...{ account_id: 'text', field: 'text', number: 'text', detail: 'text', occurred_at: 'timestamptz' },
  limit: 'text',
}

const accountRow = row({ name: string(), account_id: string().nullable() })

/** Returns the accounts of our numbers. Null while the account of the default number is unknown. */
export async function ownAccounts(tx: Tx): Promise<ReadonlySet<string> | null> {
  const rows = await tx.any(sql.type(accountRow)`select name, account_id from whatsapp_numbers`)
  const isKnown = rows.some(({ name, account_id }) => name === 'default' && account_id !== null)
  return isKnown ? new Set(rows.flatMap(({ account_id }) => account_id ?? [])) : null
}

/** The digits of a number `n`, as events name it. */
const digits = sql.fragment`regexp_replace(n.display_phone_number, '[^0-9]', '', 'g')`

/** Stores the latest event of each kind, and new limits at their numbers. */
export async function storeAccountEvents(tx: Tx, events: readonly AccountEvent[]): Promise<void> {
  await tx.query(sql.type(object())`
    with given as (
      select distinct on (account_id, field, number) * from ${rowsOf('e', EVENT, events)}
      order by account_id, field, number, occurred_at desc
    ), stored as (
      insert into whatsapp_account_events as s (account_id, field, number, occurred_at, detail)
      select account_id, field, number, occurred_at, detail from given
      on conflict (account_id, field, number) do update set
        occurred_at = excluded.occurred_at, detail = excluded.detail
      where s.occurred_at <= excluded.occurred_at
      returning account_id, field, number
    )
    update whatsapp_numbers n set messaging_limit = g.limit
    from given g join stored s using (account_id, field, number)
    where g.limit is not null and n.account_id = g.account_id
      and ${digits} = g.number`)
}

const shownRow = row({
  account_id: string(),
  field: string(),
  number: string(),
  /** The number's name. Null if the event is about the account. */
  name: string().nullable(),
  occurred_at: string(),
  detail: string(),
})

export const accountEvents = (tx: Tx) =>
  tx.any(sql.type(shownRow)`
    select e.account_id, e.field, e.number, e.occurred_at, e.detail, case when e.number <> '' then coalesce(
      (select name from whatsapp_numbers n
        where n.account_id = e.account_id and ${digits} = e.number),
      (select name from whatsapp_numbers n where n.name = 'default' and n.account_id = e.account_id)) end as name
    from whatsapp_account_events e
    order by e.occurred_at desc, e.account_id, e.field, e.number limit 100`)
