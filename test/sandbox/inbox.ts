/**
 * What arrived in the sandbox, to look at in a browser or to read as JSON; a port of its own.
 * Promises: nothing in a mail can act on this page: text is escaped, html is shown only inside a sandboxed frame,
 * and the page's policy loads nothing from elsewhere. Must not be reachable from outside: it has no login.
 */
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import Router from '@koa/router'
import Koa from 'koa'
import type { Address } from 'postal-mime'
import type { SandboxMessage, SmtpSandbox } from './smtp.ts'
import type { CloudMessage, WhatsappSandbox } from './whatsapp.ts'

export type Inbox = { port: number; close(): Promise<void> }

/** The newest that the page lists; the JSON lists all. */
const LISTED = 200
const POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

type Whatsapp = Pick<WhatsappSandbox, 'messages' | 'clear'>

const NO_WHATSAPP: Whatsapp = { messages: () => [], clear: () => {} }

export async function startInbox(options: {
  /** 0 takes a free one. */
  port: number
  host?: string
  sandbox: Pick<SmtpSandbox, 'messages' | 'clear'>
  whatsapp?: Whatsapp
}): Promise<Inbox> {
  const app = new Koa()
  const router = createRouter(options.sandbox, options.whatsapp ?? NO_WHATSAPP)
  app.use(router.routes()).use(router.allowedMethods())
  const server = await new Promise<Server>((resolve, reject) => {
    const listening = app.listen(options.port, options.host ?? '127.0.0.1', () => resolve(listening))
    listening.once('error', reject)
  })
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

function createRouter(sandbox: Pick<SmtpSandbox, 'messages' | 'clear'>, whatsapp: Whatsapp): Router {
  const router = new Router()
  const newestFirst = (): SandboxMessage[] => sandbox.messages().toReversed()
  const find = (id: string | undefined): SandboxMessage | undefined =>
    sandbox.messages().find((message) => message.id === id)

  router.get('/', async (ctx) => {
    const { id } = ctx.query
    ctx.set({ 'Content-Security-Policy': POLICY, 'X-Content-Type-Options': 'nosniff' })
    ctx.type = 'html'
    ctx.body = await page(
      newestFirst(),
      typeof id === 'string' ? find(id) : undefined,
      whatsapp.messages().toReversed(),
    )
  })
  router.get('/whatsapp', (ctx) => {
    ctx.body = whatsapp.messages().toReversed().map(sent)
  })
  router.delete('/whatsapp', (ctx) => {
    whatsapp.clear()
    ctx.status = 204
  })
  router.get('/messages', async (ctx) => {
    ctx.body = await Promise.all(newestFirst().map(summary))
  })
  router.delete('/messages', (ctx) => {
    sandbox.clear()
    ctx.status = 204
  })
  router.get('/messages/:id', async (ctx) => {
    const message = find(ctx.params.id)
    if (message) ctx.body = await details(message)
  })
  router.get('/messages/:id/raw', (ctx) => {
    const message = find(ctx.params.id)
    if (!message) return
    ctx.set({ 'Content-Type': 'message/rfc822', 'X-Content-Type-Options': 'nosniff' })
    ctx.body = message.raw
  })
  return router
}

async function summary(message: SandboxMessage) {
  const { subject, from, to, messageId } = await message.parsed()
  const { id, received_at, mail_from, rcpt_to, size } = message
  return {
    ...{ id, received_at, mail_from, rcpt_to },
    subject: subject ?? '',
    from: from ? written(from) : '',
    to: (to ?? []).map(written),
    message_id: messageId ?? '',
    size,
  }
}

async function details(message: SandboxMessage) {
  const { headers, text, html } = await message.parsed()
  return {
    ...(await summary(message)),
    headers: headers.map(({ originalKey, value }) => ({ name: originalKey, value })),
    text: text ?? '',
    html: html ?? '',
  }
}

const written = ({ name, address }: Address): string =>
  name === '' ? (address ?? '') : `${name} <${address ?? ''}>`

const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (letter) => `&#${letter.charCodeAt(0)};`)

/** A WhatsApp message as it is listed. */
const sent = ({ id, received_at, status, body }: CloudMessage) => {
  const { to, template, biz_opaque_callback_data } = body
  return { id, received_at, to, status, template, biz_opaque_callback_data }
}

function whatsappRow(message: CloudMessage): string {
  const { id, received_at, to, status, template } = sent(message)
  const cells = [received_at, to, template?.name, JSON.stringify(template?.components ?? []), status, id]
  return `<tr>${cells.map((text) => `<td>${escapeHtml(String(text))}`).join('')}</tr>`
}

async function page(
  messages: SandboxMessage[],
  chosen: SandboxMessage | undefined,
  whatsapp: CloudMessage[],
): Promise<string> {
  const rows = await Promise.all(messages.slice(0, LISTED).map(row))
  return `<!doctype html><html lang="en"><meta charset="utf-8"><title>Sandbox inbox</title>
<style>
  body { font: 15px/1.4 system-ui, sans-serif; margin: 2rem; max-width: 70rem }
  table { border-collapse: collapse; width: 100% } td, th { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #ddd }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #f6f6f6; padding: 1rem }
  iframe { width: 100%; height: 30rem; border: 1px solid #ccc }
</style>
<h1>Sandbox inbox</h1>
<p>${messages.length} kept, newest first. As JSON: <a href="/messages">/messages</a></p>
${chosen ? await letter(chosen) : ''}
<table><tr><th>Received<th>From<th>To<th>Subject<th>Bytes</tr>
${rows.join('\n')}
</table>
<h2>WhatsApp</h2>
<p>${whatsapp.length} kept, newest first. As JSON: <a href="/whatsapp">/whatsapp</a></p>
<table><tr><th>Received<th>To<th>Template<th>Parameters<th>Status<th>Id</tr>
${whatsapp.slice(0, LISTED).map(whatsappRow).join('\n')}
</table></html>`
}

async function row(message: SandboxMessage): Promise<string> {
  const { id, received_at, from, rcpt_to, subject, size } = await summary(message)
  const cells = [received_at, from, rcpt_to.join(', ')].map((text) => `<td>${escapeHtml(text)}`).join('')
  return `<tr>${cells}<td><a href="/?id=${id}">${escapeHtml(subject || '(no subject)')}</a><td>${size}</tr>`
}

async function letter(message: SandboxMessage): Promise<string> {
  const { id, subject, headers, text, html } = await details(message)
  const lines = headers.map(({ name, value }) => `${name}: ${value}`).join('\n')
  const envelope = `envelope: ${message.mail_from} → ${message.rcpt_to.join(', ')}`
  return `<h2>${escapeHtml(subject)}</h2>
<p>${escapeHtml(envelope)} · <a href="/messages/${id}/raw">raw</a> · <a href="/messages/${id}">JSON</a></p>
<pre>${escapeHtml(lines)}</pre>
${html === '' ? '' : `<iframe sandbox srcdoc="${escapeHtml(html)}"></iframe>`}
${text === '' ? '' : `<pre>${escapeHtml(text)}</pre>`}`
}
