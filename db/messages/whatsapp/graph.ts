/**
 * Queries Meta's Graph API about numbers and accounts: whether a token has access, the state of a number, and
 * whether our app is subscribed to the account.
 * https://developers.facebook.com/documentation/business-messaging/whatsapp/reference/whatsapp-business-phone-number
 */

import { requestError } from '../../errors.ts'
import { ask, describeFailure } from '../../process/limited-response.ts'
import { isObject, objectsIn } from '../../validation/fields.ts'
import { parseJson } from '../../validation/strings.ts'
import { storableId, storableWords } from '../../validation/words.ts'
import { TEXTS } from './texts.ts'

type Json = Readonly<Record<string, unknown>>

/** The URL of the API with its version, and the number's credentials. */
type NumberQuery = { url: string; token: string; phone_number_id: string; account_id: string }

/** Meta's data about a number. `webhook`: where its events go, null if Meta doesn't include it. */
export type NumberState = {
  display_phone_number: string | null
  verified_name: string | null
  quality: string | null
  messaging_limit: string | null
  subscribed: boolean
  webhook: Readonly<Record<string, string>> | null
}

/** Meta rejected the token, or the token has no access to the number or account. */
export class TokenRejected extends Error {}

const MAX_BYTES = 1024 * 1024
const TIMEOUT_MS = 20_000
const MAX_PAGES = 50
const NUMBER_FIELDS = [
  ...['id', 'display_phone_number', 'verified_name', 'quality_rating'],
  ...['whatsapp_business_manager_messaging_limit', 'webhook_configuration'],
]

const text = (value: unknown): string | null => storableId(value)

/**
 * Sends one request. @throws TokenRejected with Meta's message. @throws RequestError unavailable without a response.
 */
async function request(
  { url, token }: NumberQuery,
  path: string,
  query: Readonly<Record<string, string>> = {},
  method: 'GET' | 'POST' = 'GET',
): Promise<Json> {
  const address = `${url}/${path}?${new URLSearchParams({ ...query })}`
  const headers = { Authorization: `Bearer ${token}` }
  const answer = await ask(address, { method, headers }, { bytes: MAX_BYTES, ms: TIMEOUT_MS }).catch(
    (error: unknown) => {
      const values = { host: new URL(url).host, reason: describeFailure(error) }
      throw requestError('unavailable', TEXTS.metaUnreachable, values)
    },
  )
  const body = answer.body === null ? null : parseJson(answer.body.toString())
  if (answer.ok && isObject(body)) return body
  const error = isObject(body) && isObject(body.error) ? body.error : {}
  const words = storableWords(`HTTP ${answer.status} ${String(error.message ?? answer.fault)}`.trim(), [
    token,
  ])
  const isTheirs = answer.status >= 500 || answer.status === 429 || answer.status === 408 || answer.ok
  if (isTheirs) throw requestError('unavailable', TEXTS.metaFailed, { reason: words })
  throw new TokenRejected(words)
}

/** True if the account has the number. @throws as `request` does. */
async function hasNumber(query: NumberQuery): Promise<boolean> {
  let after = ''
  for (let page = 0; page < MAX_PAGES; page++) {
    const { data, paging } = await request(query, `${query.account_id}/phone_numbers`, {
      ...{ fields: 'id', limit: '100' },
      ...(after ? { after } : {}),
    })
    if (objectsIn(data).some(({ id }) => String(id) === query.phone_number_id)) return true
    const { next, cursors } = isObject(paging) ? paging : {}
    const cursor = isObject(cursors) ? text(cursors.after) : null
    if (next === undefined || cursor === null || cursor === after) return false
    after = cursor
  }
  return false
}

/** Returns the ID of the token's app. Null if Meta doesn't include it. */
async function readApp(query: NumberQuery): Promise<string | null> {
  try {
    const { data } = await request(query, 'debug_token', { input_token: query.token })
    return isObject(data) && data.app_id !== undefined ? String(data.app_id) : null
  } catch (error) {
    if (error instanceof TokenRejected) return null
    throw error
  }
}

/**
 * True if the token's app receives the account's events. With `subscribe`, it is subscribed if necessary. A POST for
 * a subscribed app would remove the account's callback override.
 */
async function isSubscribed(query: NumberQuery, subscribe: boolean): Promise<boolean> {
  const path = `${query.account_id}/subscribed_apps`
  const app = await readApp(query)
  if (app === null) return false
  const { data } = await request(query, path)
  const known = objectsIn(data).some(
    ({ whatsapp_business_api_data: its }) => isObject(its) && String(its.id) === app,
  )
  if (known || !subscribe) return known
  await request(query, path, {}, 'POST')
  return true
}

/** Returns Meta's callback URL, by the level at which it is set. */
const parseWebhook = (given: unknown): NumberState['webhook'] => {
  if (!isObject(given)) return null
  const levels = ['phone_number', 'whatsapp_business_account', 'application']
  return Object.fromEntries(
    levels.flatMap((level) => (text(given[level]) ? [[level, String(given[level])]] : [])),
  )
}

/**
 * @param subscribe subscribes our app to the account.
 * @throws TokenRejected if the token has no access to the number or account, or the number isn't in the account.
 * @throws RequestError unavailable
 */
export async function askNumber(
  query: NumberQuery,
  { subscribe }: { subscribe: boolean },
): Promise<NumberState> {
  const number = await request(query, query.phone_number_id, { fields: NUMBER_FIELDS.join(',') })
  if (!(await hasNumber(query)))
    throw new TokenRejected(
      `the number ${query.phone_number_id} doesn't belong to the account ${query.account_id}`,
    )
  return {
    display_phone_number: text(number.display_phone_number),
    verified_name: typeof number.verified_name === 'string' ? storableWords(number.verified_name) : null,
    quality: text(number.quality_rating),
    messaging_limit: text(number.whatsapp_business_manager_messaging_limit),
    subscribed: await isSubscribed(query, subscribe),
    webhook: parseWebhook(number.webhook_configuration),
  }
}
