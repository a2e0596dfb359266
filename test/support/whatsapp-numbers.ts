/** WhatsApp numbers for tests: stored rows with encrypted tokens, and their assignment to teams. */
import { sql } from 'slonik'
import { sealCredential } from '../../db/messages/whatsapp/numbers.ts'
import type { Service } from './service.ts'

type Place = Pick<Service, 'database' | 'deps'>

export type GivenNumber = {
  name: string
  phone_number_id: string
  account_id: string
  token: string
  messages_per_second?: number
  app_secret?: string
}

/** Stores a number, as `number add` does. */
export async function makeNumber({ database, deps }: Place, given: GivenNumber): Promise<GivenNumber> {
  const { name, phone_number_id, account_id, token, app_secret, messages_per_second = 1_000 } = given
  const sealed = sealCredential(deps.secrets, name, 'access_token', Buffer.from(token))
  const secret = app_secret ? sealCredential(deps.secrets, name, 'app_secret', Buffer.from(app_secret)) : null
  await database.query(sql.unsafe`
    insert into whatsapp_numbers (
      name, phone_number_id, account_id, access_token, app_secret, messages_per_second, created_at)
    values (${name}, ${phone_number_id}, ${account_id}, ${sql.binary(sealed)}, ${secret && sql.binary(secret)},
      ${messages_per_second}, now())`)
  return given
}

/** Stores the default number, as a worker does. */
export const makeDefaultNumber = async (
  { database }: Place,
  { phone_number_id, account_id }: { phone_number_id: string; account_id: string | null },
): Promise<void> => {
  await database.query(sql.unsafe`
    insert into whatsapp_numbers (name, phone_number_id, account_id, created_at)
    values ('default', ${phone_number_id}, ${account_id}, now())
    on conflict (name) do update set phone_number_id = excluded.phone_number_id, account_id = excluded.account_id`)
}

/** Assigns a number to a team, and the number's account to its templates. */
export async function giveNumber({ database }: Place, teamId: string, name: string | null): Promise<void> {
  await database.query(sql.unsafe`update teams set whatsapp_number = ${name} where id = ${teamId}`)
  await database.query(sql.unsafe`
    update whatsapp_templates set account_id = (select account_id from whatsapp_numbers where name = ${name})
    where team_id = ${teamId}`)
}
