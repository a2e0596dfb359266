/** Shared by the pages of webhooks: states, event types, responses and form fields. Pure. */

import { isDeepStrictEqual } from 'node:util'
import { array, object, string } from 'yup'
import { ALL_TYPES, TEST_TYPE, WEBHOOK_TYPES } from '../../../../db/channels/events/webhook-types.ts'
import type { EndpointFields, EndpointRow } from '../../../../db/messages/webhooks/endpoints.sql.ts'
import type { REPLAYED } from '../../../../db/messages/webhooks/listing.sql.ts'
import { plural } from '../../../../db/plural.ts'
import { parseJson } from '../../../../db/validation/strings.ts'
import type { Cell } from '../../components/cell.ts'
import { keptOr, tickedOr } from '../../components/lines.ts'
import type { Field } from '../../components/section.ts'
import { buildOptions, compact, field, hidden } from '../../server/builders.ts'

export const PATH = '/teams/:team/webhooks'

export const EVERY_TYPE: readonly string[] = [...WEBHOOK_TYPES, TEST_TYPE]

export const typeOptions = (all: string) => [
  { value: '', label: all },
  ...EVERY_TYPE.map((type) => ({ value: type, label: type })),
]

export const REPLAY_LABELS: Readonly<Record<(typeof REPLAYED)[number], string>> = {
  failed: 'failed',
  over: 'delivered or failed',
  waiting: 'waiting for the next attempt',
}

export const endpointStateCell = ({ state, failing_since, paused_until }: EndpointRow): Cell => {
  if (state === 'disabled') return { text: 'disabled', tone: 'bad' }
  if (paused_until !== null) return { text: 'paused', tone: 'warn' }
  return failing_since === null ? { text: 'enabled', tone: 'good' } : { text: 'failing', tone: 'warn' }
}

export const typeWords = (types: readonly string[]): string =>
  types.includes(ALL_TYPES) ? 'everything' : types.join(', ')

/** Counts several types. Their names are in the tooltip. */
export const typesCell = (types: readonly string[]): Cell =>
  types.includes(ALL_TYPES) || types.length === 1
    ? { text: typeWords(types) }
    : { text: plural(types.length, 'type'), tip: typeWords(types) }

export const answerCell = (code: number | null): Cell =>
  code === null
    ? { text: 'no response', tone: 'bad' }
    : { text: String(code), tone: code >= 200 && code <= 299 ? 'good' : 'bad' }

/** Explanations of connection errors, by the code in their message. */
const FAULTS: Readonly<Record<string, string>> = {
  ENOTFOUND: 'the name could not be found',
  EAI_AGAIN: 'the name could not be looked up',
  ECONNREFUSED: 'the connection was refused',
  ECONNRESET: 'the server closed the connection',
  EPIPE: 'the server closed the connection',
  ETIMEDOUT: 'the server could not be reached in time',
  EHOSTUNREACH: 'the server could not be reached',
  ENETUNREACH: 'the server could not be reached',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is self-signed',
  SELF_SIGNED_CERT_IN_CHAIN: 'its certificate is self-signed',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'its certificate cannot be verified',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'its certificate cannot be verified',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
}

/** Returns the server's response to an attempt, or an explanation of the connection error. */
function answerWords({ status, response }: { status: number | null; response: string }): string {
  const code = status === null ? response.match(/\b[A-Z][A-Z_]{4,}\b/)?.[0] : undefined
  const words = code === undefined ? undefined : FAULTS[code]
  return words === undefined ? response : `${words} (${code})`
}

/** Ends of lines and paragraphs in an HTML error page. */
const LINE_ENDS = /<\/(?:h\d|p|title|div|li)>|<[bh]r\b[^<>]*>/gi

/** Returns the response without the tags of an HTML error page and without its status, which is shown next to it. */
export function shortAnswer(attempt: Parameters<typeof answerWords>[0]): string {
  const response = answerWords(attempt)
  const isPage = /^\s*</.test(response)
  const lines = isPage
    ? response
        .replaceAll(LINE_ENDS, '\n')
        .replaceAll(/<[^<>]*>?/g, ' ')
        .split('\n')
    : [response]
  const line = compact(lines.map((words) => words.replaceAll(/\s+/g, ' ').trim())).join(' · ')
  const status = `${attempt.status} `
  return line.startsWith(status) ? line.slice(status.length) : line
}

export function fieldsFor(domains: readonly string[], endpoint: EndpointRow | null): Field[] {
  const types = endpoint?.types ?? []
  const chosen = types.includes(ALL_TYPES) ? [ALL_TYPES] : types
  // Keeps a removed domain, because saving other fields must not widen the endpoint to all domains.
  const choices = new Set(compact([...domains, endpoint?.domain && endpoint.domain]))
  return compact([
    endpoint && hidden('shown', JSON.stringify(toValues(endpoint))),
    field('url', 'URL', {
      required: true,
      value: endpoint?.url ?? '',
      placeholder: 'https://example.com/webhooks',
    }),
    field('name', 'Name', { value: endpoint?.name ?? '' }),
    field('types', 'Events', {
      type: 'checks',
      options: buildOptions([ALL_TYPES, ...EVERY_TYPE], chosen, (type) => typeWords([type])),
      hint: '“everything” also includes event types that later versions add.',
    }),
    field('domain', 'Domain', {
      type: 'select',
      options: [
        { value: '', label: 'all events' },
        ...buildOptions([...choices], [endpoint?.domain], (name) => `only emails from ${name}`),
      ],
    }),
  ])
}

type EndpointValues = Pick<EndpointRow, 'url' | 'name' | 'types' | 'domain'>

const toValues = ({ url, name, types, domain }: EndpointRow): EndpointValues => ({ url, name, types, domain })

const shape = object({
  url: string().defined(),
  name: string().defined(),
  // A form can contain a million items, so the length is checked first.
  types: array(string().defined()).max(EVERY_TYPE.length).defined(),
  domain: string().defined().nullable(),
}).required()

/** Reads the values that the form was shown with, or null if they are missing or invalid. */
function shownIn(form: URLSearchParams): EndpointValues | null {
  const shown = parseJson(form.get('shown') ?? '')
  return shape.isValidSync(shown, { strict: true }) ? shown : null
}

/** Returns only the fields that a form changes, so that it doesn't undo the changes of another owner. */
export function changedFields(form: URLSearchParams, before: EndpointRow): EndpointFields {
  const shown = shownIn(form) ?? toValues(before)
  const sent = Object.entries(endpointFields(form, shown))
  return Object.fromEntries(
    sent.filter(([name, value]) => !isDeepStrictEqual(value, shown[name as keyof EndpointValues])),
  )
}

/** Reads an endpoint from a form. @param before the existing endpoint, whose unedited values are kept exactly. */
export function endpointFields(
  form: URLSearchParams,
  before: EndpointValues | null = null,
): EndpointFields & { url: string } {
  const name = keptOr(form.get('name') ?? '', before?.name)
  const domain = form.get('domain') || null
  return {
    url: (form.get('url') ?? '').trim(),
    ...(name === '' ? {} : { name }),
    types: tickedOr(form.getAll('types'), before?.types),
    ...(before && domain === before.domain ? {} : { domain }),
  }
}
