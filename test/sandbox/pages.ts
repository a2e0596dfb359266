/**
 * Renders the inbox's pages for emails and WhatsApp messages, with the views in this folder. Handlebars
 * escapes every external text, and no view uses triple braces. It serves nothing.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import Handlebars from 'handlebars'
import { type Bubble, bubbleOf } from './bubble.ts'
import { type Details, detailsOf, type Summary, summaryOf } from './letter.ts'
import type { SandboxMessage } from './smtp.ts'
import type { ReceivedWebhook } from './webhooks.ts'
import type { CloudMessage, Json } from './whatsapp.ts'

/** The newest that a page lists; the search looks through all. */
const LISTED = 200

export type PageQuery = { id?: string; q?: string; view?: string; images?: string }

export type Pages = {
  mail(messages: readonly SandboxMessage[], query: PageQuery): Promise<string>
  mailList(messages: readonly SandboxMessage[], query: PageQuery): Promise<string>
  phone(messages: readonly CloudMessage[], query: PageQuery): string
  phoneList(messages: readonly CloudMessage[], query: PageQuery): string
  /** @param url where they are received. */
  webhooks(messages: readonly ReceivedWebhook[], url: string): string
  webhookList(messages: readonly ReceivedWebhook[], url: string): string
}

const VIEWS = ['html', 'text', 'headers', 'source'] as const

/** A mail matches when each word of the search is in its sender, recipients, subject or text. */
const matches = ({ from, rcpt_to, subject, text, message_id }: Details, q: string): boolean => {
  const all = [from, ...rcpt_to, subject, text, message_id].join(' ').toLowerCase()
  return q
    .toLowerCase()
    .split(/\s+/)
    .every((word) => all.includes(word))
}

async function found(messages: readonly SandboxMessage[], q = ''): Promise<SandboxMessage[]> {
  const newest = messages.toReversed()
  if (q.trim() === '') return newest
  const hits = await Promise.all(newest.map(async (one) => matches(await detailsOf(one), q.trim())))
  return newest.filter((_, at) => hits[at])
}

type Row = Summary & { at: string; href: string; chosen: boolean; recipients: string }

async function rowsOf(messages: readonly SandboxMessage[], { id, q = '' }: PageQuery) {
  const hits = await found(messages, q)
  const row = async (message: SandboxMessage): Promise<Row> => {
    const summary = await summaryOf(message)
    const href = `/?${new URLSearchParams({ ...(q ? { q } : {}), id: message.id })}`
    const at = message.received_at.replace('T', ' ').slice(0, 19)
    return { ...summary, at, href, chosen: message.id === id, recipients: message.rcpt_to.join(', ') }
  }
  const rows = await Promise.all(hits.slice(0, LISTED).map(row))
  return { rows, total: messages.length, found: hits.length, more: hits.length > LISTED, q }
}

/** @param dashboard the dashboard's address, to which each message is linked. Null without one. */
export function createPages({
  templates = [],
  dashboard = null,
}: {
  templates?: readonly Json[]
  dashboard?: string | null
}): Pages {
  const views = Handlebars.create()
  const source = (name: string): string =>
    readFileSync(join(import.meta.dirname, 'views', `${name}.hbs`), 'utf8')
  for (const name of ['layout', 'mail-list', 'phone-list', 'webhook-list'])
    views.registerPartial(name, source(name))
  views.registerHelper('same', (one, other) => one === other)
  const compiled = (name: string) => views.compile(source(name), { strict: false, preventIndent: true })
  const mail = compiled('mail')
  const mailList = compiled('mail-list')
  const phone = compiled('phone')
  const phoneList = compiled('phone-list')
  const webhooks = compiled('webhooks')
  const webhookList = compiled('webhook-list')
  const view = (messages: readonly ReceivedWebhook[], url: string) => ({
    rows: messages
      .toReversed()
      .slice(0, LISTED)
      .map((one) => ({ ...one, body: JSON.stringify(one.body, null, 2) })),
    total: messages.length,
    url,
  })
  const link = (ref: string): string | null =>
    dashboard === null || ref === '' ? null : `${dashboard}/find?${new URLSearchParams({ id: ref })}`
  const letter = async (message: SandboxMessage, { q = '', view, images }: PageQuery) => {
    const details = await detailsOf(message)
    const first = details.html === '' ? 'text' : 'html'
    const shown = VIEWS.find((name) => name === view) ?? first
    const to = (name: string) =>
      `/?${new URLSearchParams({ ...(q ? { q } : {}), id: message.id, view: name })}`
    return {
      ...details,
      shown,
      tabs: VIEWS.map((name) => ({ name, href: to(name), chosen: name === shown })),
      frame: `/messages/${message.id}/html${images === '1' ? '?images=1' : ''}`,
      with_images: images === '1' ? null : `${to('html')}&images=1`,
      source: shown === 'source' ? message.raw.toString('utf8') : '',
      dashboard: link(/[0-9a-f-]{36}/.exec(details.message_id)?.[0] ?? ''),
      back: q ? `/?${new URLSearchParams({ q })}` : '/',
    }
  }
  const bubbles = (messages: readonly CloudMessage[], { q = '' }: PageQuery) => {
    const all = messages.toReversed().map((message) => bubbleOf(message, templates))
    const has = ({ to, body, header, template, ref, id }: Bubble): boolean =>
      [to, header, body, template, ref, id].join(' ').toLowerCase().includes(q.trim().toLowerCase())
    const hits = all.filter(has).map((one) => ({ ...one, dashboard: link(one.ref) }))
    return { rows: hits.slice(0, LISTED), total: all.length, found: hits.length, q }
  }
  return {
    async mail(messages, query) {
      const chosen = messages.find(({ id }) => id === query.id)
      return mail({
        ...(await rowsOf(messages, query)),
        letter: chosen ? await letter(chosen, query) : null,
        whatsapp: false,
        dashboard,
      })
    },
    mailList: async (messages, query) => mailList(await rowsOf(messages, query)),
    phone: (messages, query) =>
      phone({ ...bubbles(messages, query), whatsapp: true, elsewhere: true, dashboard }),
    webhooks: (messages, url) =>
      webhooks({ ...view(messages, url), webhooks: true, elsewhere: true, dashboard }),
    webhookList: (messages, url) => webhookList(view(messages, url)),
    phoneList: (messages, query) => phoneList(bubbles(messages, query)),
  }
}
