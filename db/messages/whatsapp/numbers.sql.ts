/** Rows of the numbers that WhatsApp messages are sent from. */
import { sql } from 'slonik'
import { array, boolean, type InferType, mixed, number, object, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { countRow, nameRow, row, rowsOf } from '../../postgres/rows.ts'

/** The number of the workers' settings. */
export const DEFAULT_NUMBER = 'default'

/** Returns the name of the number with this ID, unless it is the default one. Null without one. */
export const otherNumberOfId = (tx: Tx, phoneNumberId: string) =>
  tx.maybeOneFirst(sql.type(nameRow)`
    select name from whatsapp_numbers
    where phone_number_id = ${phoneNumberId} and name <> ${DEFAULT_NUMBER}`)

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
export type SealedNumber = InferType<typeof sealedRow>

/** Locks the encrypted credentials of all numbers. */
export const lockSealedNumbers = (tx: Tx) =>
  tx.any(sql.type(sealedRow)`
    select name, access_token, app_secret from whatsapp_numbers
    where access_token is not null order by name for update`)

/** Stores credentials that were encrypted with another key. */
export async function updateSealedNumbers(tx: Tx, rows: readonly SealedNumber[]): Promise<void> {
  const types = { name: 'text', access_token: 'bytea', app_secret: 'bytea' }
  await tx.query(sql.type(object())`
    update whatsapp_numbers n set access_token = k.access_token, app_secret = k.app_secret
    from ${rowsOf('k', types, rows)}
    where n.name = k.name`)
}

const idRow = row({ phone_number_id: string() })

export const pausedNumbers = (tx: Tx) =>
  tx.anyFirst(sql.prepared('paused_whatsapp_numbers', idRow)`
    select phone_number_id from whatsapp_numbers where paused_at is not null`)

const numberRow = row({
  name: string(),
  phone_number_id: string(),
  account_id: string(),
  display_phone_number: string().nullable(),
  verified_name: string().nullable(),
  quality: string().nullable(),
  messaging_limit: string().nullable(),
  messages_per_second: number(),
  /** True if an operator or Meta has paused it. */
  paused: boolean(),
  subscribed: boolean().nullable(),
  missing: array(string()),
  checked_at: string().nullable(),
})
export type WhatsappNumber = InferType<typeof numberRow>

const numberColumns = sql.fragment`
  n.name, n.phone_number_id, n.account_id, n.display_phone_number, n.verified_name, n.quality, n.messaging_limit,
  n.messages_per_second, n.paused_at is not null or exists (
    select from senders s
    where s.key = 'whatsapp:' || n.phone_number_id and s.paused_until > (select service_time())) as paused,
  n.subscribed, n.missing, n.checked_at`

export const allNumbers = (tx: Tx) =>
  tx.any(sql.type(numberRow)`
    select ${numberColumns} from whatsapp_numbers n where n.name <> ${DEFAULT_NUMBER} order by n.name`)

const defaultRow = row({ phone_number_id: string(), account_id: string().nullable() })

/** Returns the number of the workers' settings, or null if no worker has stored one. */
export const defaultNumber = (tx: Tx) =>
  tx.maybeOne(sql.type(defaultRow)`
    select phone_number_id, account_id from whatsapp_numbers where name = ${DEFAULT_NUMBER}`)

const useOfSenderRow = row({
  name: string(),
  /** Since when an operator has paused it. */
  paused_at: string().nullable(),
  /** Until when Meta has paused it, and why. */
  paused_until: string().nullable(),
  pause_reason: string().nullable(),
  attempted_at: string().nullable(),
  /** How many teams have chosen it. Other teams use the default number. */
  teams: number(),
})

/** Returns by name the last attempt of each number, its pauses and its teams. Includes the default one. */
export async function numberSends(tx: Tx) {
  const rows = await tx.any(sql.type(useOfSenderRow)`
    select n.name, n.paused_at, s.pause_reason, s.refilled_at as attempted_at,
      case when s.paused_until > (select service_time()) then s.paused_until end as paused_until,
      (select count(*) from teams t where t.whatsapp_number = n.name) as teams
    from whatsapp_numbers n left join senders s on s.key = 'whatsapp:' || n.phone_number_id`)
  return new Map(rows.map((row) => [row.name, row]))
}

/** Returns the number with this name, unless it is the default one. Null without one. */
export const numberByName = (tx: Tx, name: string) =>
  tx.maybeOne(sql.type(numberRow)`
    select ${numberColumns} from whatsapp_numbers n where n.name = ${name} and n.name <> ${DEFAULT_NUMBER}`)

/** Names a number by its name and its ID at Meta. */
type NumberIds = Pick<WhatsappNumber, 'name' | 'phone_number_id'>

/** Returns the number with this name or phone number ID, including the default one. Null without one. */
export const findTakenNumber = (tx: Tx, { name, phone_number_id }: NumberIds) =>
  tx.maybeOneFirst(sql.type(nameRow)`
    select name from whatsapp_numbers where name = ${name} or phone_number_id = ${phone_number_id}
    order by name <> ${name} limit 1`)

type NewNumber = SealedNumber & Pick<WhatsappNumber, 'phone_number_id' | 'account_id' | 'messages_per_second'>

/** @returns false if its name or ID already exists. */
export async function insertNumber(tx: Tx, given: NewNumber, now: Date): Promise<boolean> {
  const stored = await tx.maybeOne(sql.type(nameRow)`
    insert into whatsapp_numbers (
      name, phone_number_id, account_id, access_token, app_secret, messages_per_second, created_at)
    values (${given.name}, ${given.phone_number_id}, ${given.account_id}, ${sql.binary(given.access_token)},
      ${given.app_secret && sql.binary(given.app_secret)}, ${given.messages_per_second}, ${sql.timestamp(now)})
    on conflict do nothing returning name`)
  return stored !== null
}

/** A change of a number. Undefined fields keep their value. */
type NumberChange = {
  access_token?: Buffer | undefined
  app_secret?: Buffer | undefined
  messages_per_second?: number | undefined
}

export const updateNumber = (tx: Tx, name: string, change: NumberChange) =>
  tx.query(sql.type(object())`
    update whatsapp_numbers set
      access_token = coalesce(${change.access_token ? sql.binary(change.access_token) : null}, access_token),
      app_secret = coalesce(${change.app_secret ? sql.binary(change.app_secret) : null}, app_secret),
      messages_per_second = coalesce(${change.messages_per_second ?? null}::int, messages_per_second)
    where name = ${name}`)

/** Meta's data about a number. */
type Said = Pick<
  WhatsappNumber,
  'display_phone_number' | 'verified_name' | 'quality' | 'messaging_limit' | 'subscribed'
>
type Check = { said: Said | null; missing: readonly string[]; now: Date }

/** Stores the result of a check. `said` is null if Meta rejected the token. */
export const storeCheck = (tx: Tx, name: string, { said, missing, now }: Check) =>
  tx.query(sql.type(object())`
    update whatsapp_numbers set missing = ${sql.array(missing, 'text')}, checked_at = ${sql.timestamp(now)}
      ${
        said
          ? sql.fragment`, display_phone_number = ${said.display_phone_number}, verified_name = ${said.verified_name},
              quality = ${said.quality}, messaging_limit = ${said.messaging_limit}, subscribed = ${said.subscribed}`
          : sql.fragment``
      }
    where name = ${name}`)

export const setNumberPause = (tx: Tx, name: string, paused_at: Date | null) =>
  tx.query(sql.type(object())`
    update whatsapp_numbers set paused_at = ${paused_at && sql.timestamp(paused_at)} where name = ${name}`)

const useRow = row({ teams: number(), waiting: number() })

/** Counts the teams that have the number, and the messages that wait for it. */
export const useOfNumber = (tx: Tx, { name, phone_number_id }: NumberIds) =>
  tx.one(sql.type(useRow)`
    select (select count(*) from teams where whatsapp_number = ${name}) as teams, (
      select count(*) from whatsapp_messages
      where phone_number_id = ${phone_number_id} and (unfinished or due_at is not null)) as waiting`)

export const deleteNumber = (tx: Tx, name: string) =>
  tx.query(sql.type(object())`delete from whatsapp_numbers where name = ${name}`)

const credentialsRow = numberRow
  .pick(['name', 'phone_number_id', 'account_id', 'display_phone_number'])
  .concat(sealedRow)
export type NumberRow = InferType<typeof credentialsRow>

/** Returns a number with its encrypted credentials. Null without one of this name. */
export const numberCredentials = (tx: Tx, name: string) =>
  tx.maybeOne(sql.type(credentialsRow)`
    select name, phone_number_id, account_id, display_phone_number, access_token, app_secret from whatsapp_numbers
    where name = ${name} and name <> ${DEFAULT_NUMBER}`)

const ownRow = row({
  number: string(),
  phone_number_id: string().nullable(),
  /** Null: the account of the default number is unknown. */
  account_id: string().nullable(),
  is_default: boolean(),
})

/** Returns the number of a team and its account. Null if the team doesn't exist. */
export const numberOfTeam = (tx: Tx, teamId: string) =>
  tx.maybeOne(sql.type(ownRow)`
    select coalesce(n.name, 'default') as number, n.phone_number_id, n.account_id, t.whatsapp_number is null as is_default
    from teams t left join whatsapp_numbers n on n.name = coalesce(t.whatsapp_number, 'default')
    where t.id = ${teamId}`)

const waitsRow = row({ waits: boolean() })

/** True if a team has waiting messages of the default number. */
export const waitsForDefault = (tx: Tx, teamId: string) =>
  tx.oneFirst(sql.type(waitsRow)`
    select exists (
      select from whatsapp_messages
      where team_id = ${teamId} and unfinished and phone_number_id is null) as waits`)

/** Assigns a number to a team. Null: the default one. Its positions in the queues are reset. */
export async function setTeamNumber(tx: Tx, teamId: string, name: string | null): Promise<void> {
  await tx.query(sql.type(object())`update teams set whatsapp_number = ${name} where id = ${teamId}`)
  await tx.query(sql.type(object())`
    update allowances set whatsapp_place = 0, whatsapp_batch_place = 0,
      whatsapp_parts_place = 0, whatsapp_parts_batch_place = 0
    where team_id = ${teamId}`)
}

/** Counts a team's waiting messages of numbers other than this one. Null: other than the default one. */
export const waitingElsewhere = async (tx: Tx, teamId: string, phoneNumberId: string | null) =>
  tx.oneFirst(sql.type(countRow)`
    select count(*) from whatsapp_messages
    where team_id = ${teamId} and (unfinished or due_at is not null)
      and phone_number_id is distinct from ${phoneNumberId}`)

/**
 * Sets the templates to pending that may not exist in the team's new account.
 * @param account null: the account of the default number.
 */
export const suspendTemplates = (tx: Tx, teamId: string, account: string | null, now: Date) =>
  tx.query(sql.type(object())`
    update whatsapp_templates t set
      status = 'pending', status_at = ${sql.timestamp(now)}, updated_at = ${sql.timestamp(now)}
    where t.team_id = ${teamId}
      and coalesce(t.account_id, (select account_id from whatsapp_numbers where name = ${DEFAULT_NUMBER}))
        is distinct from ${account}`)
