/**
 * Lists the templates of a WhatsApp Business Account, page by page. It follows the API's cursors, never a URL in a
 * response. If the time limit passes before the last page, the listing fails. An unreadable template delays no other.
 */
import { RequestError, resultOrError } from '../../../db/errors.ts'
import { readTemplate } from '../../../db/messages/whatsapp/save-template.ts'
import type { TemplateContent } from '../../../db/messages/whatsapp/templates.sql.ts'
import { ask, type BoundedAnswer, describeFailure } from '../../../db/process/limited-response.ts'
import { isObject } from '../../../db/validation/fields.ts'
import { parseJson } from '../../../db/validation/strings.ts'
import { toTemplateState } from './reports.ts'

const PAGE_SIZE = 100
const MAX_PAGES = 200
const PAGE_TIMEOUT_MS = 20_000
/** Ten times the size of a page of long templates. */
const MAX_PAGE_BYTES = 4 * 1024 * 1024
/** For all pages together, in bytes. */
const MAX_LIST_BYTES = 32 * 1024 * 1024
/** The time limit of all pages, in milliseconds. Well within the expiry of the calling job (db/queue/jobs.ts). */
const LIST_TIMEOUT_MS = 120_000

type Options = {
  url: string
  access_token: string
  account_id: string
  /** The time limit of all pages, in milliseconds. */
  list_timeout_ms?: number
}

/** Requests one page. @throws Error that names the problem. */
async function requestPage(
  { url, access_token, account_id }: Options,
  query: URLSearchParams,
  { limit, bytes }: { limit: AbortSignal; bytes: number },
): Promise<BoundedAnswer & { body: Buffer }> {
  const bounds = { bytes, ms: PAGE_TIMEOUT_MS, signal: limit }
  const address = `${url}/${account_id}/message_templates`
  const request = { headers: { Authorization: `Bearer ${access_token}` } }
  const answer = await ask(`${address}?${query}`, request, bounds).catch((error: unknown) => {
    throw new Error(
      `the template list cannot be fetched from ${new URL(url).host}: ${describeFailure(error)}`,
    )
  })
  const { body, fault } = answer
  if (body === null) throw new Error(`the template list cannot be read: ${fault}`)
  return { ...answer, body }
}

/** Returns one page, and the cursor of the next, null after the last. @throws Error with the API's message. */
async function page(options: Options, after: string | null, bounds: { limit: AbortSignal; bytes: number }) {
  const query = new URLSearchParams({ limit: String(PAGE_SIZE), ...(after === null ? {} : { after }) })
  const { ok, status, body } = await requestPage(options, query, bounds)
  const answer = parseJson(body.toString())
  if (!ok || !isObject(answer)) {
    const error = isObject(answer) && isObject(answer.error) ? answer.error : {}
    throw new Error(`the template list was rejected: HTTP ${status} ${String(error.message ?? '')}`.trim())
  }
  const paging = isObject(answer.paging) ? answer.paging : {}
  const cursors = isObject(paging.cursors) ? paging.cursors : {}
  const next = paging.next !== undefined && typeof cursors.after === 'string' ? cursors.after : null
  return { items: Array.isArray(answer.data) ? (answer.data as unknown[]) : [], next, bytes: body.length }
}

/** Reads a template of the list unchanged. An unknown state isn't sendable. */
function readContent(item: unknown): TemplateContent[] {
  if (!isObject(item)) return []
  const status = toTemplateState(item.status) ?? 'disabled'
  const content = resultOrError(() => readTemplate({ ...item, status }))
  return content instanceof RequestError ? [] : [{ ...content, definition: item }]
}

/** @throws Error readable for operators if the API rejects the request or the time limit passes. */
export async function listTemplates(options: Options): Promise<TemplateContent[]> {
  const { list_timeout_ms = LIST_TIMEOUT_MS } = options
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
  let left = MAX_LIST_BYTES
  for (let pages = 0; pages < MAX_PAGES; pages++) {
    const most = Math.min(left, MAX_PAGE_BYTES)
    const { items, next, bytes } = await page(options, after, { limit, bytes: most })
    left -= bytes
    contents.push(...items.flatMap(readContent))
    if (next === null || next === after) return contents
    after = next
  }
  throw new Error(`the template list has more than ${MAX_PAGES} pages`)
}
