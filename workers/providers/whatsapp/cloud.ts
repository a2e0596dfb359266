/**
 * Sends template messages through the WhatsApp Cloud API over keep-alive connections, each from the number it names.
 * It never throws. Every send has a time limit. Each message carries our ids, so that a report finds its row even
 * after a lost response. faults.ts judges errors.
 */
import type { Agent } from 'node:http'
import {
  ask,
  type BoundedAnswer,
  keepAliveAgent,
  secondsUntil,
} from '../../../db/process/limited-response.ts'
import { isObject } from '../../../db/validation/fields.ts'
import { parseJson } from '../../../db/validation/strings.ts'
import { storableId, storableWords } from '../../../db/validation/words.ts'
import type { Describe } from '../provider.ts'
import { createSendTracker } from '../send-tracker.ts'
import {
  type CloudError,
  isFinalUnknownCode,
  judgeError,
  judgeFailure,
  judgeStatus,
  readCode,
} from './faults.ts'
import { listTemplates } from './listing.ts'
import type {
  NamedValue,
  OutgoingHeader,
  OutgoingWhatsapp,
  WhatsappOutcome,
  WhatsappProvider,
} from './provider.ts'

export type WhatsappCloudOptions = {
  /** The Graph API with its version, such as https://graph.facebook.com/v26.0. */
  url: string
  /** The time limits of one send and its connection, in milliseconds. */
  timeout_ms?: number
  connect_ms?: number
  list_timeout_ms?: number
}

const TIMEOUT_MS = 20_000
const MAX_ANSWER_BYTES = 256 * 1024
/** A longer wait is probed earlier, in seconds. */
const MAX_RETRY_AFTER_S = 3_600

/** Sends from any number. Each message brings its number's credentials. */
export function createWhatsappProvider(options: WhatsappCloudOptions): WhatsappProvider {
  const in_flight = createSendTracker()
  const connected = { ...options, agent: keepAliveAgent(options.url) }
  return {
    test: false,
    send: (message, cut) => in_flight.track(attempt(connected, message, cut)),
    listTemplates: (account) => listTemplates({ ...options, ...account }),
    close: in_flight.settled,
  }
}

function requestBody(message: OutgoingWhatsapp) {
  const components = toComponents(message)
  return {
    messaging_product: 'whatsapp',
    recipient_type: 'individual',
    to: message.to,
    type: 'template',
    biz_opaque_callback_data: `${message.team_id}:${message.message_id}`,
    template: {
      name: message.template.name,
      language: { code: message.template.language },
      ...(components.length > 0 ? { components } : {}),
    },
  }
}

type Connected = WhatsappCloudOptions & { agent: Agent }

async function attempt(
  { url, timeout_ms = TIMEOUT_MS, connect_ms, agent }: Connected,
  message: OutgoingWhatsapp,
  cut?: AbortSignal,
): Promise<WhatsappOutcome> {
  const { access_token, phone_number_id } = message.number
  const describe: Describe = (words) => storableWords(words, [access_token])
  try {
    const request = {
      method: 'POST',
      headers: { Authorization: `Bearer ${access_token}`, 'Content-Type': 'application/json' },
      body: JSON.stringify(requestBody(message)),
      agent,
    }
    const bounds = { bytes: MAX_ANSWER_BYTES, ms: timeout_ms, connect_ms, signal: cut }
    const answer = await ask(`${url}/${phone_number_id}/messages`, request, bounds)
    return judge(answer, describe, message)
  } catch (error) {
    return judgeFailure(error, describe)
  }
}

function judge(answer: BoundedAnswer, describe: Describe, message: OutgoingWhatsapp): WhatsappOutcome {
  // A response that isn't JSON, or couldn't be read, only has a status.
  const said = parseJson(String(answer.body))
  if (answer.ok) return takenAs(said, message.to, describe)
  const error = readError(said, describe)
  const judged = error && judgeError(error)
  if (error && !judged && isFinalUnknownCode(answer.status, message.deferrals))
    return { kind: 'refused', detail: error.words, code: String(error.code) }
  const outcome =
    judged ?? judgeStatus(answer.status, error?.words ?? `HTTP ${answer.status}`, retryAfter(answer))
  return error ? { ...outcome, code: String(error.code) } : outcome
}

/** Returns the seconds of Retry-After, a number or a date. Undefined without a valid one. */
function retryAfter({ headers }: BoundedAnswer): number | undefined {
  const seconds = secondsUntil(headers)
  return seconds > 0 ? Math.min(Math.ceil(seconds), MAX_RETRY_AFTER_S) : undefined
}

/** A 2xx means accepted, whatever the rest of the response is. A retry would send a second message. */
function takenAs(answer: unknown, to: string, describe: Describe): WhatsappOutcome {
  const { id, message_status } = readFirst(answer, 'messages')
  const readId = (given: unknown): string | null => {
    const known = storableId(given)
    return known && describe(known) === known ? known : null
  }
  const detail = typeof message_status === 'string' ? describe(message_status) : 'accepted'
  const wa_id = readId(readFirst(answer, 'contacts').wa_id)
  return {
    ...{ kind: 'accepted', detail, provider_message_id: readId(id) },
    wa_id: wa_id === to.slice(1) ? null : wa_id,
  }
}

function readFirst(answer: unknown, list: string): Readonly<Record<string, unknown>> {
  const items = isObject(answer) ? answer[list] : undefined
  const [first] = Array.isArray(items) ? (items as unknown[]) : []
  return isObject(first) ? first : {}
}

/** Returns the API's error. Its `error_data.details` is the most specific. */
function readError(answer: unknown, describe: Describe): CloudError | null {
  const error = isObject(answer) ? answer.error : undefined
  if (!isObject(error)) return null
  const code = readCode(error.code)
  if (code === null) return null
  const details = isObject(error.error_data) ? error.error_data.details : undefined
  const said = [error.message, details].filter((words) => typeof words === 'string')
  return { code, subcode: readCode(error.error_subcode) ?? 0, words: describe(`${code} ${said.join(': ')}`) }
}

const toText = ({ name, value }: NamedValue) => ({
  type: 'text',
  ...(name === null ? {} : { parameter_name: name }),
  text: value,
})

function headerParameter(header: OutgoingHeader) {
  if (header.kind === 'text') return toText(header.text)
  const { kind: type, ...given } = header
  if (!('url' in given)) return { type, location: given }
  const { url: link, file_name: filename } = given
  return { type, [type]: { link, ...(filename === null ? {} : { filename }) } }
}

/**
 * Writes a template's parameters in the Cloud API's form. Quick replies and static buttons need no component.
 * https://developers.facebook.com/documentation/business-messaging/whatsapp/templates/components
 */
function toComponents({ header, body, buttons }: Pick<OutgoingWhatsapp, 'header' | 'body' | 'buttons'>) {
  return [
    ...(header === null ? [] : [{ type: 'header', parameters: [headerParameter(header)] }]),
    ...(body.length > 0 ? [{ type: 'body', parameters: body.map(toText) }] : []),
    ...buttons.map(({ kind, place, ...given }) => ({
      type: 'button',
      sub_type: kind === 'url' ? 'url' : 'copy_code',
      index: String(place),
      parameters: [kind === 'url' ? toText(given) : { type: 'coupon_code', coupon_code: given.value }],
    })),
  ]
}
