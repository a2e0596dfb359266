/**
 * Reads webhooks of the WhatsApp Cloud API: message statuses and template states, many per body → neutral events.
 * Pure. An unreadable entry delays no other. Entries about messages or templates that aren't ours are dropped. An
 * error code means the same as in the response to a send.
 */

import type { ReportedRef } from '../../../db/delivery/reports/ref.ts'
import type { ReportedEvent } from '../../../db/messages/apply-reports.ts'
import type { ReportedStatus } from '../../../db/messages/whatsapp/apply-events.ts'
import { ACCOUNT_FIELDS } from '../../../db/messages/whatsapp/cut-post.ts'
import type { Pricing } from '../../../db/messages/whatsapp/messages.sql.ts'
import type { TemplateState } from '../../../db/messages/whatsapp/status.ts'
import type { TemplateChange } from '../../../db/messages/whatsapp/templates.sql.ts'
import { isObject, objectsIn } from '../../../db/validation/fields.ts'
import { parseJson } from '../../../db/validation/strings.ts'
import { storableId, storableWords } from '../../../db/validation/words.ts'
import type { RawReport, ReportReader } from '../report.ts'
import { type CloudError, judgeError, readCode } from './faults.ts'
import { senderKey } from './provider.ts'

type Json = Readonly<Record<string, unknown>>

const UUID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}'
const OUR_IDS = new RegExp(`^(${UUID}):(${UUID})$`, 'i')

/** The statuses that change a message. Others (played, deleted) contain nothing that we store. */
const STATUSES: readonly ReportedStatus['status'][] = ['sent', 'delivered', 'read', 'failed']

/** The provider's template states. FLAGGED and similar states leave it sendable, so they are ignored. */
const TEMPLATE_STATES: Readonly<Record<string, TemplateState>> = {
  APPROVED: 'approved',
  REINSTATED: 'approved',
  UNARCHIVED: 'approved',
  PENDING: 'pending',
  IN_APPEAL: 'pending',
  REJECTED: 'rejected',
  PAUSED: 'paused',
  DISABLED: 'disabled',
  LOCKED: 'disabled',
  ARCHIVED: 'disabled',
  DELETED: 'disabled',
  PENDING_DELETION: 'disabled',
}

export const toTemplateState = (word: unknown): TemplateState | null =>
  typeof word === 'string' && Object.hasOwn(TEMPLATE_STATES, word.toUpperCase())
    ? (TEMPLATE_STATES[word.toUpperCase()] ?? null)
    : null

/** Returns a string that can be stored unchanged. Undefined for anything else. */
const plain = (value: unknown): string | undefined => storableId(value) ?? undefined

/** Reads Unix seconds, a number or a string. Returns `fallback` for any other value. */
function readTime(value: unknown, fallback: Date): Date {
  const seconds = typeof value === 'string' || typeof value === 'number' ? Number(value) : Number.NaN
  return seconds > 0 && seconds < 32_503_680_000 ? new Date(seconds * 1_000) : fallback
}

/** Returns each error of a failure with its code and text, as Meta advises: code and details. */
const readFaults = (errors: unknown): CloudError[] =>
  objectsIn(errors).map(({ code, title, message, error_data }) => {
    const details = isObject(error_data) ? error_data.details : undefined
    const said = [...new Set([message ?? title, details])].filter((text) => typeof text === 'string')
    const named = typeof code === 'number' || typeof code === 'string' ? `${code}` : 'no code'
    const words = storableWords(`${named} ${said.join(': ')}`)
    return { code: readCode(code) ?? Number.NaN, subcode: 0, words }
  })

/** Returns our own ids if they came back, otherwise the provider's. Undefined with neither. */
function findRef(data: unknown, id: string | undefined): ReportedRef | undefined {
  const [, team_id, own] = OUR_IDS.exec(typeof data === 'string' ? data : '') ?? []
  if (team_id && own) return { team_id: team_id.toLowerCase(), id: own.toLowerCase() }
  return id === undefined ? undefined : { provider_message_id: id }
}

/** Reads a status and, for a failure, its effects on the template and on the number's other messages. */
function statusEvents(given: Json, number: string | undefined, received_at: Date): ReportedEvent[] {
  const status = STATUSES.find((word) => word === given.status)
  const id = plain(given.id)
  const ref = findRef(given.biz_opaque_callback_data, id)
  if (!status || !ref) return []
  const occurred_at = readTime(given.timestamp, received_at)
  const faults = status === 'failed' ? readFaults(given.errors) : []
  const template = templateFinding(faults)
  const coded = faults.find(({ code }) => !Number.isNaN(code))
  const pricing = readPricing(given.pricing)
  const event: ReportedEvent = {
    ...{ channel: 'whatsapp', ref, occurred_at, provider_message_id: id ?? null, number: number ?? null },
    ...(status === 'failed' ? readFailure(faults) : { status }),
    detail: storableWords(faults.map(({ words }) => words).join('; ')),
    event_key: `${id ?? occurred_at.toISOString()}:${status}`,
    ...(coded ? { code: String(coded.code) } : {}),
    ...(template ? { template } : {}),
    ...(pricing ? { pricing } : {}),
  }
  return [event, ...(number === undefined ? [] : toPauses(faults, number, occurred_at))]
}

/**
 * Returns the effect of a reported failure on its message, by the same rules as for a response. With several errors
 * all must be temporary.
 */
function readFailure(faults: readonly CloudError[]): Pick<ReportedStatus, 'status' | 'wait_seconds'> {
  const outcomes = faults.map(judgeError)
  const passes = outcomes.every((outcome) => outcome?.kind === 'sender' || outcome?.kind === 'deferred')
  if (!passes || outcomes.length === 0) return { status: 'failed' }
  // A message that waits for its template has not been attempted.
  const deferred = outcomes.flatMap((outcome) =>
    outcome?.kind === 'deferred' && !outcome.template ? [outcome] : [],
  )
  if (deferred.length === 0) return { status: 'held' }
  const waits = deferred.flatMap(({ wait_seconds }) => wait_seconds ?? [])
  return { status: 'deferred', wait_seconds: waits.length === 0 ? undefined : Math.max(...waits) }
}

function readPricing(given: unknown): Pricing | undefined {
  if (!isObject(given)) return undefined
  const { category, type, billable } = given
  return {
    category: plain(category) ?? null,
    type: plain(type) ?? null,
    billable: typeof billable === 'boolean' ? billable : null,
  }
}

/** Returns the effect of these errors on the template, as of a response. A new state has precedence over an error. */
function templateFinding(faults: readonly CloudError[]): { status: TemplateState | null } | undefined {
  const found = faults
    .map(judgeError)
    .flatMap((outcome) => (outcome && 'template' in outcome && outcome.template ? [outcome.template] : []))
  return found.find(({ status }) => status !== null) ?? found[0]
}

/** How many seconds a report pauses a number, because of the account or number, or because it sends too fast. */
const REPORTED_PAUSE_S = 300
const TOO_FAST_PAUSE_S = 60

/** Returns the pauses of the number that a failure causes. */
const toPauses = (faults: readonly CloudError[], number: string, occurred_at: Date): ReportedEvent[] =>
  faults.map(judgeError).flatMap((outcome): ReportedEvent[] => {
    if (outcome?.kind !== 'sender') return []
    const usual = outcome.trouble === 'slow' ? TOO_FAST_PAUSE_S : REPORTED_PAUSE_S
    const { wait_seconds: seconds = usual, detail: reason } = outcome
    return [{ channel: 'sender', sender: senderKey(number), seconds, reason, occurred_at }]
  })

const DIGITS = /^\d{8,15}$/

/** Reads a recipient's preference for marketing messages in WhatsApp's settings. */
function preferenceEvents(given: Json, number: string | undefined, received_at: Date): ReportedEvent[] {
  const from = plain(given.wa_id)
  if (!from || !DIGITS.test(from) || (given.value !== 'stop' && given.value !== 'resume')) return []
  const occurred_at = readTime(given.timestamp, received_at)
  const said = { from, is_out: given.value === 'stop', by: 'user_preferences' as const, occurred_at }
  return [{ channel: 'whatsapp-opt-out', number: number ?? null, reply_to: null, ...said }]
}

/** Reads a message whose text or button payload is a stop or start word. */
function messageEvents(given: Json, number: string | undefined, received_at: Date): ReportedEvent[] {
  const from = plain(given.from)
  const by: 'button' | 'text' = given.type === 'button' ? 'button' : 'text'
  if (!from || !DIGITS.test(from) || (given.keyword !== 'stop' && given.keyword !== 'start')) return []
  const occurred_at = readTime(given.timestamp, received_at)
  const reply_to = (isObject(given.context) && plain(given.context.id)) || null
  const said = { from, is_out: given.keyword === 'stop', by, occurred_at }
  return [{ channel: 'whatsapp-opt-out', number: number ?? null, reply_to, ...said }]
}

/** Returns the members of an event as text, such as `event: RESTRICTION`, including those of nested objects. */
const readMembers = (given: Json): string[] =>
  Object.entries(given).flatMap(([name, value]) => {
    if (Array.isArray(value)) return objectsIn(value).flatMap(readMembers)
    return isObject(value) ? readMembers(value) : `${name}: ${String(value)}`
  })

function accountEvents(
  given: Json,
  { account_id, ...at }: { account_id: string | undefined; field: string; occurred_at: Date },
): ReportedEvent[] {
  if (!account_id) return []
  const { display_phone_number, phone_number, ...others } = given
  const number = (plain(display_phone_number) ?? plain(phone_number) ?? '').replace(/\D/g, '')
  const limit = plain(given.max_daily_conversations_per_business) ?? plain(given.current_limit) ?? null
  const detail = storableWords(readMembers(others).join(', '))
  return [{ channel: 'whatsapp-account', account_id, ...at, number, detail, limit }]
}

/** Meta sends both a lock and its end as a lock. */
const isUnlocked = ({ event, other_info }: Json): boolean =>
  event === 'LOCKED' && isObject(other_info) && other_info.title === 'UNPAUSE'

/** The template's components have changed, so perhaps its variables. It must be listed again. */
const TEMPLATE_CHANGES: readonly unknown[] = [
  'message_template_components_update',
  'template_category_update',
]

/**
 * Reads Meta's updates about a template other than its state. The category only changes if the update names the
 * previous one.
 */
function templateFacts(given: Json) {
  const quality = plain(given.new_quality_score)
  if (quality) return { quality }
  const announced_category = plain(given.correct_category)
  const category = plain(given.previous_category) ? plain(given.new_category) : undefined
  if (category) return { category }
  return announced_category ? { announced_category } : null
}

type Template = Pick<TemplateChange, 'account_id' | 'number' | 'occurred_at'>

/** @param isChange is true if the template's components have changed, not its state. */
function templateEvents(given: Json, from: Template, isChange: boolean): ReportedEvent[] {
  const name = plain(given.message_template_name)
  const language = plain(given.message_template_language)
  if (!name || !language) return []
  const facts = templateFacts(given)
  const about = { name, language, ...from }
  const news: ReportedEvent[] = facts ? [{ channel: 'whatsapp-template-facts', ...about, ...facts }] : []
  if (isChange) return [...news, { channel: 'whatsapp-template-change', ...about }]
  if (facts) return news
  const status = isUnlocked(given) ? 'approved' : toTemplateState(given.event)
  return status ? [{ channel: 'whatsapp-template', ...about, status }] : []
}

const TEMPLATE_FIELDS: readonly unknown[] = [
  ...TEMPLATE_CHANGES,
  'message_template_status_update',
  'message_template_quality_update',
]

/** Reads webhooks. A number's own hook only concerns the teams with that number. */
export const readWhatsappReport: ReportReader = async ({ body, received_at }: RawReport) => {
  const report = parseJson(body.toString())
  if (!isObject(report)) throw new Error('the report is not a JSON object')
  const hook = plain(report.hook) ?? null
  return objectsIn(report.entry).flatMap((entry) =>
    objectsIn(entry.changes).flatMap(({ field, value }): ReportedEvent[] => {
      if (!isObject(value)) return []
      const account_id = plain(entry.id)
      const occurred_at = readTime(entry.time, received_at)
      if (TEMPLATE_FIELDS.includes(field)) {
        const from = { account_id: account_id ?? null, number: hook, occurred_at }
        return templateEvents(value, from, TEMPLATE_CHANGES.includes(field))
      }
      if (ACCOUNT_FIELDS.includes(field))
        return accountEvents(value, { account_id, field: String(field), occurred_at })
      const number = isObject(value.metadata) ? plain(value.metadata.phone_number_id) : undefined
      if (field === 'user_preferences')
        return objectsIn(value.user_preferences).flatMap((wish) =>
          preferenceEvents(wish, number, received_at),
        )
      if (field !== 'messages') return []
      return [
        ...objectsIn(value.statuses).flatMap((status) => statusEvents(status, number, received_at)),
        ...objectsIn(value.messages).flatMap((message) => messageEvents(message, number, received_at)),
      ]
    }),
  )
}
