/**
 * Lists the templates of a WhatsApp Business Account, page by page.
 * Promises: follows the API's cursors, never a URL that an answer names; a template that cannot be read holds up no
 * other; the whole list comes within its time limit, or not at all. providers.md §1.5.
 */
import { Refusal } from '../../db/errors.ts'
import { isObject } from '../../db/text/fields.ts'
import { readTemplate } from '../../db/whatsapp/save-template.ts'
import type { TemplateContent } from '../../db/whatsapp/templates.sql.ts'
import { templateStateOf } from './whatsapp-reports.ts'

const PAGE = 100
const MOST_PAGES = 200
const PAGE_TIMEOUT = 20_000
/** Of the whole list, in milliseconds: well within the expiry of the job that asks (db/queue/jobs.ts). */
const LIST_TIMEOUT = 120_000

type Options = {
  url: string
  access_token: string
  business_account_id?: string | undefined
  /** Bounds the whole list, in milliseconds. */
  list_timeout_ms?: number
}

/** One page, and the cursor of the next; null after the last. @throws Error with the API's words. */
async function page(
  { url, access_token, business_account_id }: Options,
  after: string | null,
  limit: AbortSignal,
) {
  const query = new URLSearchParams({ limit: String(PAGE), ...(after === null ? {} : { after }) })
  const response = await fetch(`${url}/${business_account_id}/message_templates?${query}`, {
    headers: { Authorization: `Bearer ${access_token}` },
    redirect: 'manual',
    signal: AbortSignal.any([limit, AbortSignal.timeout(PAGE_TIMEOUT)]),
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

/** A template of the list, kept as it is; an unknown state is not sendable. */
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

/** @throws Error in words for people: the account is not set, the API refuses, or it takes too long. */
export async function listTemplates(options: Options): Promise<TemplateContent[]> {
  if (!options.business_account_id) throw new Error('WHATSAPP_BUSINESS_ACCOUNT_ID is not set')
  const { list_timeout_ms = LIST_TIMEOUT } = options
  const limit = AbortSignal.timeout(list_timeout_ms)
  try {
    return await allPages(options, limit)
  } catch (error) {
    if (!limit.aborted) throw error
    throw new Error(`the template list took longer than ${list_timeout_ms / 1_000} s`)
  }
}

async function allPages(options: Options, limit: AbortSignal): Promise<TemplateContent[]> {
  const contents: TemplateContent[] = []
  let after: string | null = null
  for (let pages = 0; pages < MOST_PAGES; pages++) {
    const { items, next } = await page(options, after, limit)
    contents.push(...items.flatMap(contentOf))
    if (next === null || next === after) return contents
    after = next
  }
  throw new Error(`the template list has more than ${MOST_PAGES} pages`)
}
