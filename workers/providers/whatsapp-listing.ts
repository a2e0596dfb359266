/**
 * Lists the templates of a WhatsApp Business Account, page by page.
 * Promises: follows the API's cursors, never a URL that an answer names; a template that cannot be read holds up no
 * other. providers.md §1.5.
 */

import { Refusal } from '../../db/errors.ts'
import { isObject } from '../../db/fields.ts'
import { readTemplate } from '../../db/whatsapp/templates/save.ts'
import type { TemplateContent } from '../../db/whatsapp/templates/table.ts'
import { templateStateOf } from './whatsapp-reports.ts'

const PAGE = 100
const MOST_PAGES = 200
const TIMEOUT = 20_000

type Options = { url: string; access_token: string; business_account_id?: string | undefined }

/** One page, and the cursor of the next; null after the last. @throws Error with the API's words. */
async function page({ url, access_token, business_account_id }: Options, after: string | null) {
  const query = new URLSearchParams({ limit: String(PAGE), ...(after === null ? {} : { after }) })
  const response = await fetch(`${url}/${business_account_id}/message_templates?${query}`, {
    headers: { Authorization: `Bearer ${access_token}` },
    redirect: 'manual',
    signal: AbortSignal.timeout(TIMEOUT),
  })
  const answer: unknown = await response.json().catch(() => null)
  if (!response.ok || !isObject(answer)) {
    const error = isObject(answer) && isObject(answer.error) ? answer.error : {}
    throw new Error(
      `the template list was refused: HTTP ${response.status} ${String(error.message ?? '')}`.trim(),
    )
  }
  const paging = isObject(answer.paging) ? answer.paging : {}
  const cursors = isObject(paging.cursors) ? paging.cursors : {}
  const next = paging.next !== undefined && typeof cursors.after === 'string' ? cursors.after : null
  return { items: Array.isArray(answer.data) ? (answer.data as unknown[]) : [], next }
}

/** A template of the list, kept as it is; a state that we have no word for is not sendable. */
function contentOf(item: unknown): TemplateContent[] {
  if (!isObject(item)) return []
  try {
    const content = readTemplate({ ...item, status: templateStateOf(item.status) ?? 'disabled' })
    return [{ ...content, definition: item }]
  } catch (error) {
    if (error instanceof Refusal) return []
    throw error
  }
}

/** @throws Error when the account is not set, or the API refuses. */
export async function listTemplates(options: Options): Promise<TemplateContent[]> {
  if (!options.business_account_id) throw new Error('WHATSAPP_BUSINESS_ACCOUNT_ID is not set')
  const contents: TemplateContent[] = []
  let after: string | null = null
  for (let pages = 0; pages < MOST_PAGES; pages++) {
    const { items, next } = await page(options, after)
    contents.push(...items.flatMap(contentOf))
    if (next === null || next === after) return contents
    after = next
  }
  throw new Error(`the template list has more than ${MOST_PAGES} pages`)
}
