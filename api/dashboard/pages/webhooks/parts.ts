/** What the pages of webhooks share: how an endpoint stands, its types in words, the fields of its form. Pure. */

import { ALL_TYPES, TEST_TYPE, WEBHOOK_TYPES } from '../../../../db/channels/happenings/webhook-types.ts'
import type { EndpointRow } from '../../../../db/messages/webhooks/endpoints.sql.ts'
import type { EndpointFields } from '../../../../db/messages/webhooks/endpoints.ts'
import type { REPLAYED } from '../../../../db/messages/webhooks/listing.sql.ts'
import type { Cell } from '../../drawn/cell.ts'
import { keptOr, tickedOr } from '../../drawn/lines.ts'
import type { Field } from '../../drawn/section.ts'
import { some } from '../../served/made.ts'

export const PATH = '/teams/:team/webhooks'

/** Every type, the test's too. */
export const EVERY_TYPE: readonly string[] = [...WEBHOOK_TYPES, TEST_TYPE]

/** What is sent again, in words. */
export const WHICH: Readonly<Record<(typeof REPLAYED)[number], string>> = {
  failed: 'what failed',
  over: 'all that was sent, or failed',
  waiting: 'what waits for its next try, now',
}

/** How an endpoint stands. */
export const stateCell = ({ state, failing_since, paused_until }: EndpointRow): Cell => {
  if (state === 'disabled') return { text: 'disabled', tone: 'bad' }
  if (paused_until !== null) return { text: 'asks to wait', tone: 'warn' }
  return failing_since === null ? { text: 'enabled', tone: 'good' } : { text: 'failing', tone: 'warn' }
}

/** The types that an endpoint gets, in words. */
export const typeWords = (types: readonly string[]): string =>
  types.includes(ALL_TYPES) ? 'everything' : types.join(', ')

/** What came back. */
export const answerCell = (code: number | null): Cell =>
  code === null
    ? { text: 'no answer', tone: 'bad' }
    : { text: String(code), tone: code >= 200 && code <= 299 ? 'good' : 'bad' }

/** The fields of an endpoint, filled with what it has. */
export function fieldsFor(domains: readonly string[], endpoint: EndpointRow | null): Field[] {
  const types = endpoint?.types ?? []
  // A domain that was removed stays chosen: saving the rest must not widen the endpoint to all.
  const choices = new Set(some([...domains, endpoint?.domain && endpoint.domain]))
  return [
    {
      name: 'url',
      label: 'URL',
      type: 'text',
      required: true,
      value: endpoint?.url ?? '',
      placeholder: 'https://example.com/webhooks',
    },
    { name: 'name', label: 'Name', type: 'text', value: endpoint?.name ?? '' },
    {
      name: 'types',
      label: 'Events',
      type: 'checks',
      options: [ALL_TYPES, ...EVERY_TYPE].map((type) => ({
        value: type,
        label: type === ALL_TYPES ? 'everything' : type,
        selected: types.includes(type),
      })),
    },
    {
      name: 'domain',
      label: 'Domain',
      type: 'select',
      options: [
        { value: '', label: 'all emails, messages and contacts' },
        ...[...choices].map((name) => ({
          value: name,
          label: `only emails from ${name}`,
          selected: name === endpoint?.domain,
        })),
      ],
    },
  ]
}

/** What a form says of an endpoint; of one that there is, what it leaves as it is stays so. */
export function given(
  form: URLSearchParams,
  before: EndpointRow | null = null,
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
