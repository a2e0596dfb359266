/** Rows of webhook_endpoints: the servers that receive a team's events. */
import { sql } from 'slonik'
import { array, type InferType, mixed, number, object, string } from 'yup'
import { WEBHOOK_SENDERS } from '../../channels/webhook.sql.ts'
import type { Tx } from '../../postgres/pool.ts'
import { countRow, row, rowsOf } from '../../postgres/rows.ts'

const endpointRow = row({
  id: string(),
  url: string(),
  name: string(),
  types: array(string()),
  /** The domain whose events it receives, even if the team has removed it. Null: all events. */
  domain: string().nullable(),
  state: string().oneOf(['enabled', 'disabled']),
  state_reason: string().nullable(),
  disabled_at: string().nullable(),
  created_at: string(),
  last_success_at: string().nullable(),
  failing_since: string().nullable(),
  paused_until: string().nullable(),
  backlog: number(),
})
export type EndpointRow = InferType<typeof endpointRow>

const endpointColumns = sql.fragment`
  w.id, w.url, w.name, w.types, w.domain, w.state, w.state_reason, w.disabled_at, w.created_at,
  w.last_success_at, w.failing_since,
  (select s.paused_until from senders s
    where s.key = ${WEBHOOK_SENDERS} || w.id::text and s.paused_until > now()) as paused_until,
  (select count(*) from webhook_messages m
    where m.team_id = w.team_id and m.endpoint_id = w.id and m.unfinished) as backlog`

export const endpointsOfTeam = (tx: Tx, teamId: string) =>
  tx.any(sql.type(endpointRow)`
    select ${endpointColumns} from webhook_endpoints w where w.team_id = ${teamId} order by w.id`)

export const endpointById = (tx: Tx, teamId: string, id: string) =>
  tx.maybeOne(sql.type(endpointRow)`
    select ${endpointColumns} from webhook_endpoints w where w.team_id = ${teamId} and w.id = ${id}`)

const pausedRow = row({
  key: string(),
  team_id: string(),
  team: string(),
  id: string(),
  name: string(),
  paused_until: string(),
  reason: string().nullable(),
})

/** Returns endpoints of all teams that have requested a pause, longest first. */
export const pausedEndpoints = (tx: Tx, limit: number) =>
  tx.any(sql.type(pausedRow)`
    select s.key, w.team_id, t.name as team, w.id, w.name, s.paused_until, s.pause_reason as reason
    from senders s
      join webhook_endpoints w on w.id::text = substr(s.key, ${WEBHOOK_SENDERS.length + 1}::int)
      join teams t on t.id = w.team_id
    where starts_with(s.key, ${WEBHOOK_SENDERS}) and s.paused_until > (select service_time())
    order by s.paused_until desc limit ${limit}`)

/** Counts a team's endpoints. Locks the team, so that two calls can't exceed the limit together. */
export async function countEndpoints(tx: Tx, teamId: string): Promise<number> {
  await tx.query(sql.type(object())`select from teams where id = ${teamId} for no key update`)
  return tx.oneFirst(sql.type(countRow)`
    select count(*) as count from webhook_endpoints where team_id = ${teamId}`)
}

type NewEndpoint = Pick<EndpointRow, 'id' | 'url' | 'name' | 'domain'> & {
  types: readonly string[]
  secret: Buffer
}

export const insertEndpoint = (
  tx: Tx,
  teamId: string,
  { id, url, name, types, domain, secret }: NewEndpoint,
  now: Date,
) =>
  tx.query(sql.type(object())`
    insert into webhook_endpoints (team_id, id, url, name, types, domain, state, secret, created_at)
    values (${teamId}, ${id}, ${url}, ${name}, ${sql.array(types, 'text')}, ${domain}, 'enabled',
      ${sql.binary(secret)}, ${sql.timestamp(now)})`)

/** The fields of an endpoint. An absent field keeps its value, or gets its default. */
export type EndpointFields = {
  url?: string | undefined
  name?: string | undefined
  /** '*' or a list of types. */
  types?: readonly string[] | undefined
  domain?: string | null | undefined
}

/** Changes an endpoint. A new URL starts without the failures of the old one. */
export const updateEndpoint = (
  tx: Tx,
  teamId: string,
  id: string,
  { url, name, types, domain }: EndpointFields,
) =>
  tx.query(sql.type(object())`
    update webhook_endpoints set
      failing_since = case when ${url ?? null}::text <> url then null else failing_since end,
      url = coalesce(${url ?? null}, url), name = coalesce(${name ?? null}, name),
      types = case when ${types === undefined} then types else ${sql.array([...(types ?? [])], 'text')} end,
      domain = case when ${domain === undefined} then domain else ${domain ?? null} end
    where team_id = ${teamId} and id = ${id}`)

const mark = sql.fragment`left(encode(sha256(secret), 'hex'), 16)`

/** Identifies an endpoint's secret by a hash of its encrypted form, for a confirmation page. */
export const secretMark = (tx: Tx, teamId: string, id: string) =>
  tx.oneFirst(sql.type(row({ mark: string() }))`
    select ${mark} as mark from webhook_endpoints where team_id = ${teamId} and id = ${id}`)

/**
 * @param until the old secret also signs until then. Null: it no longer signs.
 * @param seen the mark of the secret to replace. Null: any.
 * @returns false if it had another secret.
 */
export async function replaceSecret(
  tx: Tx,
  teamId: string,
  { id, secret, until, seen }: { id: string; secret: Buffer; until: Date | null; seen: string | null },
): Promise<boolean> {
  const end = until && sql.timestamp(until)
  const { rowCount } = await tx.query(sql.type(object())`
    update webhook_endpoints set
      previous_secret = ${end === null ? sql.fragment`null` : sql.fragment`secret`},
      previous_until = ${end}, secret = ${sql.binary(secret)}
    where team_id = ${teamId} and id = ${id} and (${seen}::text is null or ${mark} = ${seen})`)
  return rowCount > 0
}

/** Deletes the pause of an endpoint. Change the endpoint's row first, because attempts lock them in that order. */
export const deleteEndpointPause = (tx: Tx, id: string) =>
  tx.query(sql.type(object())`delete from senders where key = ${WEBHOOK_SENDERS} || ${id}::text`)

/** Enables an endpoint, or disables it for a reason. If it is already disabled, the time stays. */
export async function setEndpointState(
  tx: Tx,
  teamId: string,
  { id, reason }: { id: string; reason: string | null },
): Promise<void> {
  await tx.query(sql.type(object())`
    update webhook_endpoints set
      state = ${reason === null ? 'enabled' : 'disabled'}, state_reason = ${reason},
      disabled_at = case when ${reason}::text is not null then coalesce(disabled_at, now()) end,
      failing_since = case when ${reason}::text is null then null else failing_since end
    where team_id = ${teamId} and id = ${id}`)
  await deleteEndpointPause(tx, id)
}

export const deleteEndpoint = (tx: Tx, teamId: string, id: string) =>
  tx.query(sql.type(object())`
    with gone as (
      delete from webhook_messages where team_id = ${teamId} and endpoint_id = ${id} returning id
    ), noted as (
      delete from webhook_events where team_id = ${teamId} and message_id in (select id from gone)
    ), calm as (
      delete from senders where key = ${WEBHOOK_SENDERS} || ${id}::text
    )
    delete from webhook_endpoints where team_id = ${teamId} and id = ${id}`)

const sealedRow = row({
  team_id: string(),
  id: string(),
  secret: mixed<Buffer>(),
  previous_secret: mixed<Buffer>().nullable(),
})
export type SealedSecrets = InferType<typeof sealedRow>

/** Locks the encrypted secrets of all endpoints. */
export const lockSealedSecrets = (tx: Tx) =>
  tx.any(sql.type(sealedRow)`
    select team_id, id, secret, previous_secret from webhook_endpoints order by team_id, id for update`)

/** Stores secrets that were encrypted with another key. */
export async function updateSealedSecrets(tx: Tx, rows: readonly SealedSecrets[]): Promise<void> {
  const types = { team_id: 'uuid', id: 'uuid', secret: 'bytea', previous_secret: 'bytea' }
  await tx.query(sql.type(object())`
    update webhook_endpoints w set secret = k.secret, previous_secret = k.previous_secret
    from ${rowsOf('k', types, rows)}
    where w.team_id = k.team_id and w.id = k.id`)
}
