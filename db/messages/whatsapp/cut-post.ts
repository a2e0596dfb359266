/**
 * Reduces a post of the WhatsApp Cloud API to the necessary data, before anything is stored. Messages from
 * recipients are dropped unless they are a stop or start keyword. Such a message keeps its ID, sender, time
 * and type, the ID of the replied-to message, and the keyword, but not its text. Pure.
 * https://developers.facebook.com/documentation/business-messaging/whatsapp/webhooks/reference/messages
 */
import { isObject, objectsIn } from '../../validation/fields.ts'
import { compact, pick } from '../../validation/keys.ts'
import { parseJson } from '../../validation/strings.ts'
import { findKeyword } from './stop-words.ts'

type Json = Readonly<Record<string, unknown>>

/** Counts entries that need no action, by kind. `hook`: entries about a number other than the hook's. */
type Ignored = Record<'message' | 'status' | 'event' | 'hook', number>

/** The number of a hook. The owner of the app secret signs its posts, so they may only be about this number. */
export type HookScope = { phone_number_id: string; account_id: string; display_phone_number: string | null }

type Cutting = { ignored: Ignored; stopWords: readonly string[] }

/** `body` is null if no entry needs processing. */
type CutPost = { body: Buffer | null; ignored: Ignored }

const STATUSES: readonly unknown[] = ['sent', 'delivered', 'read', 'failed']

/** The fields of a change about a template, and the members of its value to keep. */
const TEMPLATE_FIELDS: readonly unknown[] = [
  'message_template_status_update',
  'message_template_components_update',
  'template_category_update',
  'message_template_quality_update',
]
const TEMPLATE_MEMBERS = [
  ...['event', 'reason', 'message_template_id', 'message_template_name', 'message_template_language'],
  ...['previous_category', 'new_category', 'correct_category', 'new_quality_score'],
]

/** The fields of a change about an account or a number to keep. None contains recipient data. */
export const ACCOUNT_FIELDS: readonly unknown[] = [
  ...['phone_number_quality_update', 'phone_number_name_update', 'account_update', 'account_alerts'],
  'business_capability_update',
]
const ACCOUNT_MEMBERS = [
  ...['event', 'display_phone_number', 'phone_number', 'current_limit', 'decision'],
  ...['requested_verified_name', 'rejection_reason', 'max_daily_conversations_per_business'],
  ...['max_daily_conversation_per_phone', 'max_phone_numbers_per_business', 'max_phone_numbers_per_waba'],
  ...['entity_type', 'entity_id'],
]
const ACCOUNT_PARTS = {
  alert_info: ['alert_severity', 'alert_status', 'alert_type', 'alert_description'],
  ban_info: ['waba_ban_state', 'waba_ban_date'],
  violation_info: ['violation_type'],
} as const

function cutAccount(value: Json): Json {
  const parts = Object.entries(ACCOUNT_PARTS).map(
    ([name, members]) => [name, plain(value[name], members)] as const,
  )
  const restriction_info = objectsIn(value.restriction_info).map((each) =>
    plain(each, ['restriction_type', 'expiration']),
  )
  return { ...plain(value, ACCOUNT_MEMBERS), ...filled({ ...Object.fromEntries(parts), restriction_info }) }
}

/** Picks the named members of an object that are strings, numbers or booleans. */
function plain(value: unknown, names: readonly string[]): Json {
  const given: Json = isObject(value) ? value : {}
  return pick(given, ...names.filter((name) => ['string', 'number', 'boolean'].includes(typeof given[name])))
}

/** Returns the members that aren't empty. */
const filled = (members: Readonly<Record<string, Json | readonly Json[]>>): Json =>
  Object.fromEntries(Object.entries(members).filter(([, value]) => Object.keys(value).length > 0))

/** Reduces a message. Null if it isn't a stop or start word. An already reduced message doesn't change. */
function cutMessage(message: Json, stopWords: readonly string[]): Json | null {
  const { type, text, button, context } = message
  const said = { text: isObject(text) && text.body, button: isObject(button) && button.payload }
  const isCut = message.keyword === 'stop' || message.keyword === 'start'
  const keyword = isCut
    ? message.keyword
    : findKeyword(type === 'text' ? said.text : type === 'button' && said.button, stopWords)
  if (keyword === null) return null
  const own = plain(message, ['id', 'from', 'timestamp', 'type'])
  return { ...own, ...filled({ context: plain(context, ['id']) }), keyword }
}

/** Reduces a preference about marketing messages. Null if it is about something else. */
const cutPreference = (wish: Json): Json | null =>
  wish.category === 'marketing_messages' && (wish.value === 'stop' || wish.value === 'resume')
    ? plain(wish, ['wa_id', 'category', 'value', 'timestamp'])
    : null

const cutError = (error: Json): Json => ({
  ...plain(error, ['code', 'title', 'message']),
  ...filled({ error_data: plain(error.error_data, ['details']) }),
})

/** Reduces a status. Null if it contains nothing to store. */
const cutStatus = (status: Json): Json | null =>
  STATUSES.includes(status.status)
    ? {
        ...plain(status, ['id', 'status', 'timestamp', 'recipient_id', 'biz_opaque_callback_data']),
        ...filled({
          errors: objectsIn(status.errors).map(cutError),
          pricing: plain(status.pricing, ['billable', 'pricing_model', 'category', 'type']),
        }),
      }
    : null

/** Reduces each entry of a list, and counts the dropped ones. */
function cutEach(
  given: unknown,
  cut: (entry: Json) => Json | null,
  { ignored, as }: { ignored: Ignored; as: keyof Ignored },
): Json[] {
  const entries: unknown[] = Array.isArray(given) ? given : []
  const left = compact(objectsIn(entries).map(cut))
  ignored[as] += entries.length - left.length
  return left
}

const keepDigits = (value: unknown): string =>
  typeof value === 'string' || typeof value === 'number' ? String(value).replace(/\D/g, '') : ''

/** True if a change is about the hook's number, or about its account in general. */
function isWithin(
  { field, value }: Json,
  { account_id, phone_number_id, display_phone_number }: HookScope,
  account: unknown,
): boolean {
  if (!isObject(value)) return true
  if (field === 'messages' || field === 'user_preferences')
    return isObject(value.metadata) && value.metadata.phone_number_id === phone_number_id
  const own = keepDigits(display_phone_number)
  const named = [value.display_phone_number, value.phone_number].map(keepDigits)
  return account === account_id && named.every((digits) => digits === '' || digits === own)
}

const countEntries = ({ value }: Json): number => {
  const lists = isObject(value) ? [value.statuses, value.messages, value.user_preferences] : []
  return Math.max(1, lists.flat().filter(isObject).length)
}

function cutChange({ field, value }: Json, { ignored, stopWords }: Cutting): Json | null {
  if (TEMPLATE_FIELDS.includes(field) && isObject(value)) {
    const other_info = plain(value.other_info, ['title', 'description'])
    return { field, value: { ...plain(value, TEMPLATE_MEMBERS), ...filled({ other_info }) } }
  }
  if (ACCOUNT_FIELDS.includes(field) && isObject(value)) return { field, value: cutAccount(value) }
  if (field === 'user_preferences' && isObject(value)) {
    const user_preferences = cutEach(value.user_preferences, cutPreference, { ignored, as: 'event' })
    if (user_preferences.length === 0) return null
    const metadata = plain(value.metadata, ['phone_number_id'])
    return { field, value: filled({ metadata, user_preferences }) }
  }
  if (field !== 'messages' || !isObject(value)) {
    ignored.event += 1
    return null
  }
  const statuses = cutEach(value.statuses, cutStatus, { ignored, as: 'status' })
  const cut = (message: Json) => cutMessage(message, stopWords)
  const messages = cutEach(value.messages, cut, { ignored, as: 'message' })
  if (statuses.length === 0 && messages.length === 0) return null
  const metadata = plain(value.metadata, ['phone_number_id'])
  return { field, value: filled({ metadata, statuses, messages }) }
}

/**
 * Reduces a post. Null if it isn't a JSON object. Reducing a post again doesn't change a byte.
 * @param stopWords additional keywords from a setting (stop-words.ts).
 * @param scope the number of the hook, if it belongs to one. The result names it as `hook`.
 */
export function cutPost(
  body: Buffer,
  stopWords: readonly string[] = [],
  scope: HookScope | null = null,
): CutPost | null {
  const post = parseJson(body.toString())
  if (!isObject(post)) return null
  const ignored: Ignored = { message: 0, status: 0, event: 0, hook: 0 }
  const entry = objectsIn(post.entry).flatMap((each) => {
    const changes = objectsIn(each.changes)
      .filter((change) => {
        const within = scope === null || isWithin(change, scope, each.id)
        if (!within) ignored.hook += countEntries(change)
        return within
      })
      .map((change) => cutChange(change, { ignored, stopWords }))
      .filter((change) => change !== null)
    return changes.length === 0 ? [] : [{ ...plain(each, ['id', 'time']), changes }]
  })
  if (entry.length === 0) return { body: null, ignored }
  const hook = scope === null ? {} : { hook: scope.phone_number_id }
  return { body: Buffer.from(JSON.stringify({ ...plain(post, ['object']), ...hook, entry })), ignored }
}
