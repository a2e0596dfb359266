/**
 * Serves the sandbox's inbox, for a browser or as JSON, on a separate port. Nothing in an email can affect
 * this page: text is escaped, html is shown only in a sandboxed frame under its own policy, and the page's
 * policy loads nothing external. It has no login, so it must not be reachable from outside.
 */

import { readFileSync } from 'node:fs'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import Router from '@koa/router'
import Koa, { type Context, type Middleware } from 'koa'
import { attachmentOf, detailsOf, summaryOf } from './letter.ts'
import { createPages, type PageQuery, type Pages } from './pages.ts'
import type { SandboxMessage, SmtpSandbox } from './smtp.ts'
import { createWebhookReceiver, type WebhookReceiver } from './webhooks.ts'
import type { CloudMessage, Json, WhatsappSandbox } from './whatsapp.ts'

type Inbox = { port: number; close(): Promise<void> }

const POLICY = [
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'",
  "frame-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
].join('; ')

/**
 * Returns the policy of an email's html: nothing runs and nothing is fetched, except external images on
 * request.
 */
const mailPolicy = (images: boolean): string =>
  `sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:${images ? ' https: http:' : ''}; frame-ancestors 'self'`

const ASSETS = { 'inbox.css': 'text/css', 'inbox.js': 'text/javascript' } as const

type Mail = Pick<SmtpSandbox, 'messages' | 'clear'>
type Whatsapp = Pick<WhatsappSandbox, 'messages' | 'clear'>

const NO_WHATSAPP: Whatsapp = { messages: () => [], clear: () => {} }

export async function startInbox(options: {
  /** 0 picks a free one. */
  port: number
  host?: string
  sandbox: Mail
  whatsapp?: Whatsapp
  /** The provider's template objects, to show messages filled. */
  templates?: readonly Json[]
  /** Where the dashboard is, for links to it. */
  dashboard?: string | null
}): Promise<Inbox> {
  const app = new Koa()
  const pages = createPages(options)
  app.use(refuseStrangers)
  const routes = [
    mailRoutes(options.sandbox, pages),
    whatsappRoutes(options.whatsapp ?? NO_WHATSAPP, pages),
    webhookRoutes(createWebhookReceiver(), pages),
    assetRoutes(),
  ]
  for (const router of routes) app.use(router.routes()).use(router.allowedMethods())
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

/** Another site's page must not empty the inbox. */
const refuseStrangers: Middleware = async (ctx, next) => {
  const from = ctx.get('Sec-Fetch-Site')
  if (ctx.method === 'POST' && from !== '' && from !== 'same-origin') ctx.throw(403)
  await next()
}

const queryOf = ({ query }: Context): PageQuery =>
  Object.fromEntries(Object.entries(query).filter(([, value]) => typeof value === 'string'))

function sendPage(ctx: Context, html: string): void {
  ctx.set({
    'Content-Security-Policy': POLICY,
    'X-Content-Type-Options': 'nosniff',
    'Cache-Control': 'no-store',
  })
  ctx.type = 'html'
  ctx.body = html
}

function mailRoutes(sandbox: Mail, pages: Pages): Router {
  const router = new Router()
  const find = (id: string | undefined): SandboxMessage | undefined =>
    sandbox.messages().find((message) => message.id === id)
  router.get('/', async (ctx) => sendPage(ctx, await pages.mail(sandbox.messages(), queryOf(ctx))))
  router.get('/list', async (ctx) => sendPage(ctx, await pages.mailList(sandbox.messages(), queryOf(ctx))))
  router.post('/clear', (ctx) => {
    sandbox.clear()
    ctx.redirect('/')
  })
  router.get('/messages', async (ctx) => {
    ctx.body = await Promise.all(sandbox.messages().toReversed().map(summaryOf))
  })
  router.delete('/messages', (ctx) => {
    sandbox.clear()
    ctx.status = 204
  })
  router.get('/messages/:id', async (ctx) => {
    const message = find(ctx.params.id)
    if (message) ctx.body = await detailsOf(message)
  })
  router.get('/messages/:id/html', async (ctx) => {
    const message = find(ctx.params.id)
    if (!message) return
    const policy = mailPolicy(ctx.query.images === '1')
    ctx.set({ 'Content-Security-Policy': policy, 'X-Content-Type-Options': 'nosniff' })
    ctx.type = 'html'
    ctx.body = (await detailsOf(message)).html
  })
  router.get('/messages/:id/attachments/:place', async (ctx) => {
    const message = find(ctx.params.id)
    const file = message && (await attachmentOf(message, Number(ctx.params.place)))
    if (!file) return
    ctx.attachment(file.filename)
    ctx.set({ 'Content-Security-Policy': "sandbox; default-src 'none'", 'X-Content-Type-Options': 'nosniff' })
    ctx.type = 'application/octet-stream'
    ctx.body = file.bytes
  })
  router.get('/messages/:id/raw', (ctx) => {
    const message = find(ctx.params.id)
    if (!message) return
    ctx.set({ 'Content-Type': 'message/rfc822', 'X-Content-Type-Options': 'nosniff' })
    ctx.body = message.raw
  })
  return router
}

/** Returns a WhatsApp message for the list. */
const sent = ({ id, received_at, status, body }: CloudMessage) => {
  const { to, template, biz_opaque_callback_data } = body
  return { id, received_at, to, status, template, biz_opaque_callback_data }
}

function whatsappRoutes(whatsapp: Whatsapp, pages: Pages): Router {
  const router = new Router()
  router.get('/phone', (ctx) => sendPage(ctx, pages.phone(whatsapp.messages(), queryOf(ctx))))
  router.get('/phone/list', (ctx) => sendPage(ctx, pages.phoneList(whatsapp.messages(), queryOf(ctx))))
  router.post('/phone/clear', (ctx) => {
    whatsapp.clear()
    ctx.redirect('/phone')
  })
  router.get('/whatsapp', (ctx) => {
    ctx.body = whatsapp.messages().toReversed().map(sent)
  })
  router.delete('/whatsapp', (ctx) => {
    whatsapp.clear()
    ctx.status = 204
  })
  return router
}

/** Serves /webhooks as a customer's server: requests are stored, and shown with whether they are genuine. */
function webhookRoutes(receiver: WebhookReceiver, pages: Pages): Router {
  const router = new Router()
  const url = (ctx: Context): string => `${ctx.protocol}://${ctx.host}/webhooks`
  router.post('/webhooks', async (ctx) => {
    ctx.status = receiver.take(ctx.headers, await text(ctx.req))
  })
  router.get('/webhooks', (ctx) => sendPage(ctx, pages.webhooks(receiver.messages(), url(ctx))))
  router.get('/webhooks/list', (ctx) => sendPage(ctx, pages.webhookList(receiver.messages(), url(ctx))))
  router.get('/webhooks/messages', (ctx) => {
    ctx.body = receiver.messages().toReversed()
  })
  router.post('/webhooks/secrets', async (ctx) => {
    const secret = new URLSearchParams(await text(ctx.req)).get('secret') ?? ''
    if (receiver.trust(secret)) ctx.redirect('/webhooks')
    else ctx.throw(400, 'A webhook secret starts with whsec_.')
  })
  router.post('/webhooks/clear', (ctx) => {
    receiver.clear()
    ctx.redirect('/webhooks')
  })
  return router
}

function assetRoutes(): Router {
  const router = new Router()
  for (const [name, type] of Object.entries(ASSETS)) {
    const bytes = readFileSync(join(import.meta.dirname, 'assets', name))
    router.get(`/assets/${name}`, (ctx) => {
      ctx.type = type
      ctx.body = bytes
    })
  }
  return router
}
