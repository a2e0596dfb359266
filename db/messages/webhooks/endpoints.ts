/**
 * Creates, changes, disables and tests a team's webhook endpoints. A secret is shown only when it is created. A
 * disabled endpoint receives nothing. Its waiting events, and those of the following days, are stored as failed and
 * can be replayed (replay.ts).
 */
import { isDeepStrictEqual } from 'node:util'
import { type By, record } from '../../accounts/audit/record.ts'
import { domainByName } from '../../accounts/domains/domains.sql.ts'
import { requireTeam } from '../../accounts/teams/view.ts'
import { ALL_TYPES, TEST_TYPE, WEBHOOK_TYPES } from '../../channels/events/webhook-types.ts'
import { storeTestWebhook } from '../../channels/events/webhooks.ts'
import { fieldError, invalidField, RequestError, requestError } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import { idNow } from '../../process/ids.ts'
import { type Network, urlFault } from '../../process/public-address.ts'
import type { Secrets } from '../../process/secrets.ts'
import { wakeOnCommit } from '../../queue/wake.ts'
import { domainToAscii } from '../../validation/address.ts'
import { changedMeanwhile } from '../../validation/mark.ts'
import { checkName } from '../../validation/name.ts'
import { isUuid } from '../../validation/strings.ts'
import { TEXTS } from '../texts.ts'
import {
  countEndpoints,
  deleteEndpoint,
  deleteEndpointPause,
  type EndpointFields,
  type EndpointRow,
  endpointById,
  endpointsOfTeam,
  insertEndpoint,
  lockSealedSecrets,
  replaceSecret,
  type SealedSecrets,
  setEndpointState,
  updateEndpoint,
  updateSealedSecrets,
} from './endpoints.sql.ts'
import { type AttemptRow, readAttempts } from './listing.sql.ts'
import { failWaiting } from './messages.sql.ts'
import { makeSecret, openSecret, sealSecret } from './secret.ts'

const MAX_ENDPOINTS = 10
/** How long the previous secret also signs. */
const SECRET_ROTATION_MS = 86_400_000
const SHOWN_TRIES = 50

export const BY_HAND = 'disabled by hand'

export type ShownEndpoint = EndpointRow & { attempts: readonly AttemptRow[] }

type Choosing = By & { allowed: readonly Network[] }

/** Returns the event types as stored, each once. @throws RequestError bad_request for an unknown type, or none. */
export function checkTypes(given: readonly string[]): string[] {
  const types = [...new Set(given)]
  const all: readonly string[] = [ALL_TYPES, TEST_TYPE, ...WEBHOOK_TYPES]
  const unknown = types.find((type) => !all.includes(type))
  if (unknown !== undefined) {
    const known = WEBHOOK_TYPES.join(', ')
    throw invalidField('types', TEXTS.noType, { type: JSON.stringify(unknown), types: known })
  }
  if (types.length === 0) throw invalidField('types', TEXTS.noTypeGiven, { all: ALL_TYPES })
  if (types.length > 1 && types.includes(ALL_TYPES))
    throw invalidField('types', TEXTS.allAndTypes, { all: ALL_TYPES })
  return types
}

/**
 * @param bound the current domain, which it can keep even if it was removed. @throws RequestError bad_request,
 * not_found.
 */
async function checked(
  { tx, allowed }: Pick<Choosing, 'tx' | 'allowed'>,
  teamId: string,
  { url, name, types, domain: asked }: EndpointFields,
  bound: string | null = null,
): Promise<EndpointFields> {
  const problem = url === undefined ? null : urlFault(url, allowed)
  if (problem !== null) throw invalidField('url', problem)
  if (name !== undefined) checkName(name)
  const domain = asked && (domainToAscii(asked) ?? asked)
  if (domain && domain !== bound && !(await domainByName(tx, teamId, domain)))
    throw fieldError('not_found', 'domain', TEXTS.noDomainOfField, { name: asked })
  return {
    url: url === undefined ? undefined : withoutFragment(url),
    name,
    types: types && checkTypes(types),
    domain: domain === '' ? null : domain,
  }
}

function withoutFragment(text: string): string {
  const url = new URL(text)
  url.hash = ''
  return url.href
}

/** @throws RequestError not_found for the team or the endpoint. */
export async function requireEndpoint(tx: Tx, teamId: string, id: string): Promise<EndpointRow> {
  const endpoint = isUuid(id) ? await endpointById(tx, teamId, id) : null
  if (endpoint) return endpoint
  await requireTeam(tx, teamId)
  throw requestError('not_found', TEXTS.noWebhook, { id })
}

/** @throws RequestError not_found. */
export async function listEndpoints(tx: Tx, teamId: string): Promise<readonly EndpointRow[]> {
  await requireTeam(tx, teamId)
  return endpointsOfTeam(tx, teamId)
}

/** Returns an endpoint with its latest attempts. @throws RequestError not_found. */
export async function showEndpoint(tx: Tx, teamId: string, id: string): Promise<ShownEndpoint> {
  const endpoint = await requireEndpoint(tx, teamId, id)
  return { ...endpoint, attempts: await readAttempts(tx, teamId, id, SHOWN_TRIES) }
}

/** @throws RequestError not_found for team or domain, bad_request. */
export async function addEndpoint(
  { secrets, ...at }: Choosing & { secrets: Pick<Secrets, 'encrypt'> },
  teamId: string,
  fields: EndpointFields & { url: string },
): Promise<EndpointRow & { secret: string }> {
  const { tx, now } = at
  await requireTeam(tx, teamId)
  const { url = fields.url, name, types, domain } = await checked(at, teamId, fields)
  if ((await countEndpoints(tx, teamId)) >= MAX_ENDPOINTS)
    throw requestError('bad_request', TEXTS.tooManyWebhooks, { most: MAX_ENDPOINTS })
  const id = idNow()
  const secret = makeSecret(secrets, { team_id: teamId, id })
  const endpoint = {
    ...{ id, url, name: name ?? new URL(url).hostname, types: types ?? [ALL_TYPES] },
    domain: domain ?? null,
    secret: secret.sealed,
  }
  await insertEndpoint(tx, teamId, endpoint, now)
  await record(at, { team_id: teamId, action: 'webhook.add', subject: id, detail: url })
  return { ...(await requireEndpoint(tx, teamId, id)), secret: secret.shown }
}

/** Changes an endpoint. A new URL doesn't inherit a pause of the old one. @throws RequestError. */
export async function changeEndpoint(at: Choosing, teamId: string, id: string, fields: EndpointFields) {
  const { tx } = at
  const before = await requireEndpoint(tx, teamId, id)
  const change = await checked(at, teamId, fields, before.domain)
  await updateEndpoint(tx, teamId, id, change)
  if (change.url !== undefined && change.url !== before.url) {
    await deleteEndpointPause(tx, id)
    await wakeOnCommit(tx, 'deliver-webhook')
  }
  const changed = await requireEndpoint(tx, teamId, id)
  if (!isDeepStrictEqual(changed, before))
    await record(at, { team_id: teamId, action: 'webhook.set', subject: id, detail: changed.url })
  return changed
}

/**
 * Replaces an endpoint's secret. The old one also signs for a day, unless `at_once`.
 * @param seen the mark of the secret on the confirmation page, so that two rotations can't drop the secret that
 * servers know.
 * @throws RequestError not_found. invalid_state if the secret has changed.
 */
export async function rotateSecret(
  { secrets, ...at }: By & { secrets: Pick<Secrets, 'encrypt'> },
  teamId: string,
  id: string,
  { at_once = false, seen = null }: { at_once?: boolean; seen?: string | null },
): Promise<EndpointRow & { secret: string }> {
  const { tx, now } = at
  const endpoint = await requireEndpoint(tx, teamId, id)
  const secret = makeSecret(secrets, { team_id: teamId, id })
  const until = at_once ? null : new Date(now.getTime() + SECRET_ROTATION_MS)
  if (!(await replaceSecret(tx, teamId, { id, secret: secret.sealed, until, seen })))
    throw changedMeanwhile(TEXTS.secretRotated)
  await record(at, { team_id: teamId, action: 'webhook.rotate', subject: id, detail: endpoint.url })
  return { ...endpoint, secret: secret.shown }
}

/** Enables an endpoint for new events. @throws RequestError not_found. */
export async function enableEndpoint(at: By, teamId: string, id: string): Promise<EndpointRow> {
  await requireEndpoint(at.tx, teamId, id)
  await setEndpointState(at.tx, teamId, { id, reason: null })
  await record(at, { team_id: teamId, action: 'webhook.enable', subject: id })
  return requireEndpoint(at.tx, teamId, id)
}

/** Disables an endpoint. New events are stored for some days. @throws RequestError not_found. */
export async function disableEndpoint(at: By, teamId: string, id: string): Promise<EndpointRow> {
  await requireEndpoint(at.tx, teamId, id)
  await stopNotifying(at.tx, teamId, { id, reason: BY_HAND })
  await record(at, { team_id: teamId, action: 'webhook.disable', subject: id })
  return requireEndpoint(at.tx, teamId, id)
}

/** Disables an endpoint for a reason. Its waiting messages fail. @returns how many. */
export async function stopNotifying(tx: Tx, teamId: string, endpoint: { id: string; reason: string }) {
  await setEndpointState(tx, teamId, endpoint)
  return (await failWaiting(tx, teamId, endpoint.id)).length
}

/** Deletes an endpoint and all messages to it. @throws RequestError not_found. */
export async function removeEndpoint(at: By, teamId: string, id: string): Promise<EndpointRow> {
  const endpoint = await requireEndpoint(at.tx, teamId, id)
  await deleteEndpoint(at.tx, teamId, id)
  await record(at, { team_id: teamId, action: 'webhook.remove', subject: id, detail: endpoint.url })
  return endpoint
}

export function checkEnabled({ state }: EndpointRow): void {
  if (state === 'disabled') throw new RequestError('bad_request', TEXTS.webhookDisabled)
}

/** Sends a webhook.test event to an endpoint. @throws RequestError not_found, bad_request if it is disabled. */
export async function testEndpoint(at: By, teamId: string, id: string): Promise<{ event_id: string }> {
  checkEnabled(await requireEndpoint(at.tx, teamId, id))
  const event_id = await storeTestWebhook(at.tx, teamId, id, at.now)
  await record(at, { team_id: teamId, action: 'webhook.test', subject: id })
  return { event_id }
}

/**
 * Encrypts the secrets of webhooks again after SECRET_KEY was replaced. @returns the number of endpoints.
 * @throws RequestError bad_request naming one that can't be decrypted.
 */
export async function resealSecrets({ tx, secrets }: { tx: Tx; secrets: Secrets }): Promise<number> {
  const rows = await lockSealedSecrets(tx)
  const fresh = rows.map((row): SealedSecrets => {
    const sealed = (secret: Buffer): Buffer => sealSecret(secrets, row, openSecret(secrets, row, secret))
    try {
      return {
        ...row,
        secret: sealed(row.secret),
        previous_secret: row.previous_secret && sealed(row.previous_secret),
      }
    } catch {
      throw requestError('bad_request', TEXTS.secretUndecryptable, { id: row.id, team: row.team_id })
    }
  })
  if (fresh.length > 0) await updateSealedSecrets(tx, fresh)
  return fresh.length
}
