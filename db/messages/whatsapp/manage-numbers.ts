/**
 * Adds, checks, changes, pauses and removes numbers other than the default one. Requests to Meta run outside
 * transactions.
 */

import { type By, record } from '../../accounts/audit/record.ts'
import { endPause } from '../../delivery/senders/senders.sql.ts'
import { invalidField, RequestError, requestError } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import type { Secrets } from '../../process/secrets.ts'
import { wakeOnCommit } from '../../queue/wake.ts'
import { compact } from '../../validation/keys.ts'
import { askNumber, type NumberState, TokenRejected } from './graph.ts'
import { deriveVerifyToken, hookPath, NUMBER_NAME, WEBHOOK_FIELDS } from './number-hook.ts'
import {
  deleteNumber,
  findTakenNumber,
  insertNumber,
  type NumberRow,
  numberByName,
  numberCredentials,
  setNumberPause,
  storeCheck,
  updateNumber,
  useOfNumber,
  type WhatsappNumber,
} from './numbers.sql.ts'
import { openCredential, sealCredential } from './numbers.ts'
import { TEXTS } from './texts.ts'

export type NumberTools = {
  /** Runs work in its own transaction. */
  run<T>(work: (by: By) => Promise<T>): Promise<T>
  secrets: Secrets
  /** The Graph API with its version. */
  url: string
  /** The address of this service, if it is known. */
  site: string | null
}

type GivenNumber = {
  name: string
  phone_number_id: string
  account_id: string
  token: string
  app_secret?: string | undefined
  messages_per_second?: number | undefined
}

const MESSAGES_PER_SECOND = 80
const ID = /^[\w-]{1,64}$/
const PRINTABLE = /^[\x21-\x7e]+$/

async function requireNumber(tx: Tx, name: string): Promise<WhatsappNumber> {
  const found = await numberByName(tx, name)
  if (found) return found
  throw requestError('not_found', TEXTS.noNumber, { name })
}

async function requireCredentials(tx: Tx, name: string): Promise<NumberRow> {
  const found = await numberCredentials(tx, name)
  if (found) return found
  throw requestError('not_found', TEXTS.noNumber, { name })
}

function checkGiven({
  name,
  phone_number_id,
  account_id,
  token,
  messages_per_second: rate,
}: GivenNumber): void {
  if (!NUMBER_NAME.test(name)) throw invalidField('name', 'must be 1 to 64 characters of a-z, 0-9 and -')
  if (name === 'default')
    throw invalidField('name', 'must not be default, because that name means the number in the settings')
  if (!ID.test(phone_number_id))
    throw invalidField('phone_number_id', 'must be the phone number ID that Meta shows')
  if (!ID.test(account_id))
    throw invalidField('account_id', 'must be the ID of the WhatsApp Business Account')
  checkToken(token)
  checkRate(rate)
}

function checkToken(token: string): void {
  if (!PRINTABLE.test(token)) throw invalidField('token', 'must be printable ASCII characters without spaces')
}

function checkRate(rate: number | undefined): void {
  const fits = rate === undefined || (Number.isInteger(rate) && rate >= 1 && rate <= 10_000)
  if (!fits) throw invalidField('messages_per_second', 'must be a whole number from 1 to 10000')
}

function checkSecret(secret: string | undefined): void {
  if (secret === '') throw invalidField('app_secret', 'must not be empty')
}

async function assertFree(tx: Tx, given: Pick<GivenNumber, 'name' | 'phone_number_id'>): Promise<void> {
  const taken = await findTakenNumber(tx, given)
  if (taken === null) return
  const text = taken === given.name ? TEXTS.numberExists : TEXTS.numberHasId
  throw requestError('bad_request', text, { name: taken })
}

/** Queries Meta, and converts its rejection into one error. @throws RequestError bad_request */
async function verified(...args: Parameters<typeof askNumber>): Promise<NumberState> {
  try {
    return await askNumber(...args)
  } catch (error) {
    if (!(error instanceof TokenRejected)) throw error
    throw requestError('bad_request', TEXTS.tokenRejected, { reason: error.message })
  }
}

/** True if the number's events come to us, by the most specific callback URL. Null if Meta includes none. */
function isOurHook(webhook: NumberState['webhook'], name: string, site: string | null): boolean | null {
  const address = webhook?.phone_number ?? webhook?.whatsapp_business_account ?? webhook?.application
  if (address === undefined) return null
  if (!URL.canParse(address)) return false
  const { pathname, host } = new URL(address)
  const isHere = site === null || new URL(site).host === host
  return isHere && (pathname.endsWith('/hooks/whatsapp') || pathname.endsWith(hookPath(name)))
}

/** Lists the remaining setup steps for the operator, in sentences. */
function listMissing(
  { subscribed, webhook }: NumberState,
  { name, account_id, site }: { name: string; account_id: string; site: string | null },
): string[] {
  return compact([
    !subscribed &&
      `The app isn't subscribed to the account ${account_id}. Subscribe it in the dashboard, or with \`number check ${name} --subscribe\`.`,
    isOurHook(webhook, name, site) === false &&
      "Meta sends the statuses of this number's messages to another server. Set the number's callback URL to this service, or have that server forward them.",
  ])
}

/** Adds a number. @throws RequestError bad_request, unavailable. Then nothing is stored. */
export async function addNumber(
  { run, secrets, url, site }: NumberTools,
  given: GivenNumber,
  { subscribe }: { subscribe: boolean },
): Promise<WhatsappNumber> {
  checkGiven(given)
  checkSecret(given.app_secret)
  await run(({ tx }) => assertFree(tx, given))
  const { name, token, account_id, phone_number_id } = given
  const said = await verified({ url, token, phone_number_id, account_id }, { subscribe })
  return run(async (by) => {
    const { tx, now } = by
    const { app_secret, messages_per_second = MESSAGES_PER_SECOND } = given
    const stored = await insertNumber(
      tx,
      {
        ...{ name, phone_number_id, account_id, messages_per_second },
        access_token: sealCredential(secrets, name, 'access_token', Buffer.from(token)),
        app_secret: app_secret ? sealCredential(secrets, name, 'app_secret', Buffer.from(app_secret)) : null,
      },
      now,
    )
    if (!stored) await assertFree(tx, given)
    await storeCheck(tx, name, { said, missing: listMissing(said, { name, account_id, site }), now })
    await record(by, { team_id: null, action: 'number.add', subject: name, detail: phone_number_id })
    return requireNumber(tx, name)
  })
}

/** Changes a number. A new token is checked as `addNumber` does. @throws RequestError */
export async function setNumber(
  { run, secrets, url, site }: NumberTools,
  name: string,
  {
    token,
    app_secret,
    messages_per_second,
  }: Pick<GivenNumber, 'app_secret' | 'messages_per_second'> & { token?: string | undefined },
): Promise<WhatsappNumber> {
  if (token === undefined && app_secret === undefined && messages_per_second === undefined)
    throw new RequestError('bad_request', TEXTS.noNumberChange)
  if (token !== undefined) checkToken(token)
  checkSecret(app_secret)
  checkRate(messages_per_second)
  const { account_id, phone_number_id } = await run(({ tx }) => requireCredentials(tx, name))
  const said =
    token === undefined
      ? null
      : await verified({ url, token, phone_number_id, account_id }, { subscribe: false })
  const seal = (use: 'access_token' | 'app_secret', plain: string | undefined) =>
    plain === undefined ? undefined : sealCredential(secrets, name, use, Buffer.from(plain))
  return run(async (by) => {
    const { tx, now } = by
    await requireNumber(tx, name)
    const sealed = { access_token: seal('access_token', token), app_secret: seal('app_secret', app_secret) }
    await updateNumber(tx, name, { ...sealed, messages_per_second })
    if (said)
      await storeCheck(tx, name, { said, missing: listMissing(said, { name, account_id, site }), now })
    const changed = Object.entries({
      token,
      'app secret': app_secret,
      'messages per second': messages_per_second,
    })
    const detail = changed.flatMap(([what, value]) => (value === undefined ? [] : [what])).join(', ')
    await record(by, { team_id: null, action: 'number.set', subject: name, detail })
    return requireNumber(tx, name)
  })
}

/** The result of `check`: the number, and data that isn't stored. */
type CheckedNumber = WhatsappNumber & {
  webhook_configuration: NumberState['webhook']
  /** True if its events come to this service. Null if Meta doesn't include the callback URL. */
  is_our_hook: boolean | null
  /** The fields that the app must subscribe to. Meta doesn't return whether it does. */
  fields: readonly string[]
  /** True if Meta accepted the token. */
  accepted: boolean
}

/** Queries Meta about a number, and stores the result. @throws RequestError not_found, unavailable */
export async function checkNumber(
  { run, secrets, url, site }: NumberTools,
  name: string,
  { subscribe }: { subscribe: boolean },
): Promise<CheckedNumber> {
  const row = await run(({ tx }) => requireCredentials(tx, name))
  const { phone_number_id, account_id } = row
  const token = openCredential(secrets, name, 'access_token', row.access_token).toString()
  let said: NumberState | null = null
  let missing: string[] = []
  try {
    said = await askNumber({ url, token, phone_number_id, account_id }, { subscribe })
    missing = listMissing(said, { name, account_id, site })
  } catch (error) {
    if (!(error instanceof TokenRejected)) throw error
    missing = [`Meta rejects the access token: ${error.message}. Give the number a new one.`]
  }
  const number = await run(async (by) => {
    await storeCheck(by.tx, name, { said, missing, now: by.now })
    if (subscribe) await record(by, { team_id: null, action: 'number.subscribe', subject: name })
    return requireNumber(by.tx, name)
  })
  const webhook_configuration = said?.webhook ?? null
  return {
    ...number,
    webhook_configuration,
    is_our_hook: isOurHook(webhook_configuration, name, site),
    fields: WEBHOOK_FIELDS,
    accepted: said !== null,
  }
}

/** Returns a number with its hook, if it has an app secret. @throws RequestError not_found */
export async function showNumber(tx: Tx, secrets: Secrets, name: string) {
  const number = await requireNumber(tx, name)
  const { app_secret } = await requireCredentials(tx, name)
  const hook = app_secret === null ? null : hookPath(name)
  return { ...number, hook, verify_token: hook && deriveVerifyToken(secrets, name) }
}

/** Pauses a number. Its messages wait until it is resumed. @throws RequestError not_found */
export async function pauseNumber(by: By, name: string): Promise<WhatsappNumber> {
  const { tx, now } = by
  await requireNumber(tx, name)
  await setNumberPause(tx, name, now)
  await record(by, { team_id: null, action: 'number.pause', subject: name })
  return requireNumber(tx, name)
}

/** Ends all pauses of a number, including those by Meta. @throws RequestError not_found */
export async function resumeNumber(by: By, name: string): Promise<WhatsappNumber> {
  const { tx } = by
  const { phone_number_id } = await requireNumber(tx, name)
  await setNumberPause(tx, name, null)
  await endPause(tx, `whatsapp:${phone_number_id}`)
  await wakeOnCommit(tx, 'deliver-whatsapp-number')
  await record(by, { team_id: null, action: 'number.resume', subject: name })
  return requireNumber(tx, name)
}

/** Removes a number that no team has and nothing waits for. @throws RequestError not_found, invalid_state */
export async function removeNumber(by: By, name: string): Promise<{ name: string; removed: true }> {
  const { tx } = by
  const { phone_number_id } = await requireNumber(tx, name)
  const { teams, waiting } = await useOfNumber(tx, { name, phone_number_id })
  if (teams > 0 || waiting > 0)
    throw requestError('invalid_state', TEXTS.numberInUse, { name, teams, waiting })
  // Ends its pause, which would also count for a later number with this ID.
  await setNumberPause(tx, name, null)
  await deleteNumber(tx, name)
  await record(by, { team_id: null, action: 'number.remove', subject: name, detail: phone_number_id })
  return { name, removed: true }
}
