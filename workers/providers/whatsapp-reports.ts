/**
 * Reads webhooks of the WhatsApp Cloud API: message statuses and template states, many per body → neutral events.
 * Promises: pure; one that cannot be read holds up no other of its body; what says nothing about our messages or
 * templates is left out. providers.md §1.3, §1.5.
 */
import { isObject } from '../../db/fields.ts'
import type { MessageRef } from '../../db/reports/ref.ts'
import { storableWords } from '../../db/text/words.ts'
import type { ReportedStatus } from '../../db/whatsapp/report.ts'
import type { TemplateState } from '../../db/whatsapp/status.ts'
import type { RawReport, ReportedEvent, ReportReader } from './report.ts'

type Json = Readonly<Record<string, unknown>>

const UUID = '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}'
const OUR_IDS = new RegExp(`^(${UUID}):(${UUID})$`, 'i')
const LONGEST_ID = 512

/** The statuses that move a message; others (played, deleted) tell nothing that we keep. */
const STATUSES: readonly ReportedStatus['status'][] = ['sent', 'delivered', 'read', 'failed']

/** The provider's words for a template's state. FLAGGED and the like leave it sendable: no news for us. */
const TEMPLATE_STATES: Readonly<Record<string, TemplateState>> = {
  ...{ APPROVED: 'approved', REINSTATED: 'approved' },
  ...{ PENDING: 'pending', IN_APPEAL: 'pending', REJECTED: 'rejected', PAUSED: 'paused' },
  ...{ DISABLED: 'disabled', LOCKED: 'disabled', ARCHIVED: 'disabled' },
  ...{ DELETED: 'disabled', PENDING_DELETION: 'disabled' },
}

/** The state that a word of the provider's means; null when it means none. */
export const templateStateOf = (word: unknown): TemplateState | null =>
  typeof word === 'string' && Object.hasOwn(TEMPLATE_STATES, word.toUpperCase())
    ? (TEMPLATE_STATES[word.toUpperCase()] ?? null)
    : null

const objects = (value: unknown): Json[] => (Array.isArray(value) ? value.filter(isObject) : [])

/** A string that can be stored as it is; undefined for anything else. */
const plain = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' && value.length <= LONGEST_ID && storableWords(value) === value
    ? value
    : undefined

/** Unix seconds, as a number or in a string; `fallback` for anything that is no time of ours. */
function timeOf(value: unknown, fallback: Date): Date {
  const seconds = typeof value === 'string' || typeof value === 'number' ? Number(value) : Number.NaN
  return seconds > 0 && seconds < 32_503_680_000 ? new Date(seconds * 1_000) : fallback
}

/** Code and words of each error, as Meta advises: code and details. */
const faultsOf = (errors: unknown): string =>
  storableWords(
    objects(errors)
      .map(({ code, title, message, error_data }) => {
        const details = isObject(error_data) ? error_data.details : undefined
        const words = [...new Set([message ?? title, details])].filter((text) => typeof text === 'string')
        return `${String(code)} ${words.join(': ')}`
      })
      .join('; '),
  )

/** By our own ids where they came back; by the provider's otherwise; undefined with neither. */
function refOf(data: unknown, id: string | undefined): MessageRef | undefined {
  const [, team_id, own] = OUR_IDS.exec(typeof data === 'string' ? data : '') ?? []
  if (team_id && own) return { team_id: team_id.toLowerCase(), id: own.toLowerCase() }
  return id === undefined ? undefined : { provider_message_id: id }
}

function statusEvent(given: Json, received_at: Date): ReportedEvent[] {
  const status = STATUSES.find((word) => word === given.status)
  const id = plain(given.id)
  const ref = refOf(given.biz_opaque_callback_data, id)
  if (!status || !ref) return []
  const occurred_at = timeOf(given.timestamp, received_at)
  const detail = status === 'failed' ? faultsOf(given.errors) : ''
  const event_key = `${id ?? occurred_at.toISOString()}:${status}`
  return [
    {
      ...{ channel: 'whatsapp', ref, status, occurred_at, detail, event_key },
      provider_message_id: id ?? null,
    },
  ]
}

function templateEvent(given: Json, time: unknown, received_at: Date): ReportedEvent[] {
  const status = templateStateOf(given.event)
  const name = plain(given.message_template_name)
  const language = plain(given.message_template_language)
  if (!status || !name || !language) return []
  const occurred_at = timeOf(time, received_at)
  return [{ channel: 'whatsapp-template', name, language, status, occurred_at }]
}

/** The events of one webhook. @throws Error when it is no JSON object. */
export const readWhatsappReport: ReportReader = async ({ body, received_at }: RawReport) => {
  const report: unknown = JSON.parse(body.toString())
  if (!isObject(report)) throw new Error('the report is not an object')
  return objects(report.entry).flatMap((entry) =>
    objects(entry.changes).flatMap(({ field, value }): ReportedEvent[] => {
      if (!isObject(value)) return []
      if (field === 'message_template_status_update') return templateEvent(value, entry.time, received_at)
      if (field !== 'messages') return []
      return objects(value.statuses).flatMap((status) => statusEvent(status, received_at))
    }),
  )
}
