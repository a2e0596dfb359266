/**
 * Simulates the WhatsApp Cloud API. It accepts template messages, lists templates page by page, and posts
 * webhooks with a valid X-Hub-Signature-256. It is the sandbox of `npm start` (whatsapp-magic.ts) and, with
 * scripts, used by tests. Each request is stored with its parsed body, headers and connection, whatever a
 * script does. It only knows the provider's protocol.
 */
import { createHmac, randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Keep, keepNothing } from './keep.ts'

export type Json = Record<string, unknown>

/** What fills a part of a template. */
export type CloudComponent = {
  type?: string
  sub_type?: string
  index?: string
  parameters?: { type?: string; text?: string }[]
}

export type CloudTemplate = { name?: string; language?: { code: string }; components?: CloudComponent[] }

/**
 * The parts of a request for a template message that are read. It is stored unchanged, whatever is missing.
 */
type CloudRequest = { to?: string; template?: CloudTemplate; biz_opaque_callback_data?: string }

/** A received message. `body` is the parsed request. */
export type CloudMessage = {
  /** The ID in the response, wamid.… */
  id: string
  received_at: string
  path: string
  authorization: string
  body: CloudRequest
  /** How many messages with the same callback data came before. */
  tries: number
  /** The status last reported of it. */
  status: string
}

/** `hang` never answers, `reset` cuts the connection, `cut` ends in mid-body after a 200. */
export type CloudAnswer =
  | { status: number; body: unknown; headers?: Record<string, string> }
  | 'hang'
  | 'reset'
  | 'cut'

/** The response to send instead of accepting. Nothing means accepted. A script delays by awaiting. */
export type CloudScript = {
  onMessage?: (message: CloudMessage) => CloudAnswer | undefined | Promise<CloudAnswer | undefined>
  /** Returns the statuses to report for an accepted message, in order. */
  reports?: (message: CloudMessage) => readonly CloudStatus[]
}

export type CloudStatus = { status: 'sent' | 'delivered' | 'read' | 'failed'; errors?: Json[] }

/** A WhatsApp Business Account with its numbers, as one token opens it. */
export type CloudAccount = {
  id: string
  token: string
  app_id: string
  /** Whether the token's app gets the account's events, and how often that was requested. */
  subscribed: boolean
  subscriptions?: number
  /** Other apps that get the account's events. */
  other_apps?: string[]
  numbers: (Json & { id: string })[]
  templates: Json[]
}

export type WhatsappSandboxOptions = {
  /** Accounts that can be queried. Unknown ones get the default response. */
  accounts?: CloudAccount[]
  /** 0 picks a free one. */
  port: number
  host?: string
  script?: CloudScript
  /** Where webhooks go, and the app secret that they are signed with. */
  webhook?: { url: string; app_secret: string } | undefined
  templates?: Json[]
  page_size?: number
  /** Milliseconds between a message and its first report, and between reports. */
  report_pause?: number
  most?: number
  /** Where messages are stored across runs. The default is memory only. */
  keep?: Keep
}

export type WhatsappSandbox = {
  port: number
  url: string
  /** Returns the stored messages, oldest first. */
  messages(): readonly CloudMessage[]
  clear(): void
  /** How many connections have been made so far. */
  connections(): number
  /** Posts a webhook until it is accepted. */
  post(body: unknown): Promise<void>
  close(): Promise<void>
}

const MOST = 1_000
const REPORT_PAUSE = 200
const REPEATS = 10
const MAX_STATUSES = 100
const BUSINESS_ACCOUNT = '100000000000001'

export const cloudError = (code: number, message: string, details = ''): Json => ({
  error: {
    message: `(#${code}) ${message}`,
    type: 'OAuthException',
    code,
    ...(details === '' ? {} : { error_data: { messaging_product: 'whatsapp', details } }),
    fbtrace_id: 'sandbox',
  },
})

/** The signature of a webhook's raw bytes. */
export const hubSignature = (app_secret: string, body: string | Buffer): string =>
  `sha256=${createHmac('sha256', app_secret).update(body).digest('hex')}`

/** The body of a webhook with these statuses of messages. */
export const statusWebhook = (phone_number_id: string, statuses: readonly Json[]): Json => ({
  object: 'whatsapp_business_account',
  entry: [
    {
      id: BUSINESS_ACCOUNT,
      changes: [
        {
          field: 'messages',
          value: {
            messaging_product: 'whatsapp',
            metadata: { display_phone_number: '15555550100', phone_number_id },
            statuses,
          },
        },
      ],
    },
  ],
})

/** Returns the body of a webhook with an incoming message to a number. */
const incomingWebhook = (phone_number_id: string, { from, text }: { from: string; text: string }): Json => ({
  object: 'whatsapp_business_account',
  entry: [
    {
      id: BUSINESS_ACCOUNT,
      changes: [
        {
          field: 'messages',
          value: {
            ...{ messaging_product: 'whatsapp', metadata: { phone_number_id } },
            contacts: [{ wa_id: from.replace(/\D/g, ''), profile: { name: 'Ana' } }],
            messages: [
              {
                ...{ id: `wamid.${randomBytes(24).toString('base64url')}`, from: from.replace(/\D/g, '') },
                ...{ timestamp: String(Math.floor(Date.now() / 1_000)), type: 'text', text: { body: text } },
              },
            ],
          },
        },
      ],
    },
  ],
})

/** The body of a webhook about an account, such as a number's new quality. */
const eventWebhook = (account: string, field: string, value: Json): Json => ({
  object: 'whatsapp_business_account',
  entry: [{ id: account, time: Math.floor(Date.now() / 1_000), changes: [{ field, value }] }],
})

/** Returns a webhook's status of one message. */
export const statusOf = ({ id, body }: CloudMessage, { status, errors }: CloudStatus): Json => ({
  id,
  status,
  timestamp: String(Math.floor(Date.now() / 1_000)),
  recipient_id: String(body.to).slice(1),
  biz_opaque_callback_data: body.biz_opaque_callback_data,
  ...(errors ? { errors } : {}),
})

type State = {
  options: WhatsappSandboxOptions
  keep: Keep
  kept: CloudMessage[]
  tries: Map<string, number>
  closing: AbortController
  /** Statuses for the next webhook with the number of each, and the sending of webhooks that is under way. */
  waiting: { phone_number_id: string; status: Json }[]
  posting: Promise<void> | null
}

/** Resolves once it accepts connections, and rejects if the port is in use. */
export async function startWhatsappSandbox(options: WhatsappSandboxOptions): Promise<WhatsappSandbox> {
  const { keep = keepNothing } = options
  const state: State = {
    options,
    keep,
    kept: (await keep.load()).map((text) => JSON.parse(text) as CloudMessage),
    tries: new Map(),
    closing: new AbortController(),
    waiting: [],
    posting: null,
  }
  let connections = 0
  const server: Server = createServer((request, response) => {
    handle(state, request, response).catch((error: unknown) =>
      reply(response, { status: 500, body: cloudError(131000, String(error)) }),
    )
  })
  server.keepAliveTimeout = 30_000
  server.on('connection', () => connections++)
  const host = options.host ?? '127.0.0.1'
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(options.port, host, resolve)
  })
  const { port } = server.address() as AddressInfo
  return {
    port,
    url: `http://${host}:${port}/v23.0`,
    messages: () => state.kept,
    clear: () => {
      for (const message of state.kept.splice(0)) keep.remove(nameOf(message))
    },
    connections: () => connections,
    post: (body) => post(state, body),
    close: async () => {
      await new Promise<void>((resolve) => {
        state.closing.abort()
        server.close(() => resolve())
        server.closeAllConnections()
      })
      await keep.settled()
    },
  }
}

const nameOf = ({ received_at, id }: CloudMessage): string => `${received_at}-${id}`

/** Stores a message in its present state, without its credentials. */
const remember = ({ keep }: State, message: CloudMessage): void =>
  keep.put(nameOf(message), JSON.stringify({ ...message, authorization: '' }))

async function handle(state: State, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? '/', 'http://sandbox')
  const [, , id = '', edge] = pathname.split('/')
  const authorization = request.headers.authorization ?? ''
  if (request.method === 'POST' && pathname === '/incoming') {
    const { number, from, text } = (await json(request)) as { number: string; from: string; text: string }
    void post(state, incomingWebhook(number, { from, text }))
    response.writeHead(202).end()
  } else if (request.method === 'POST' && pathname === '/event') {
    const { account, field, value } = (await json(request)) as { account: string; field: string; value: Json }
    void post(state, eventWebhook(account, field, value))
    response.writeHead(202).end()
  } else if (!/^Bearer \S+$/.test(authorization)) {
    reply(response, { status: 401, body: cloudError(190, 'Invalid OAuth access token') })
  } else if (answerOfAccount(state, { request, id, edge, searchParams }, response)) {
    // It is answered.
  } else if (request.method === 'POST' && edge === 'messages') {
    const body = (await json(request)) as CloudRequest
    await take(state, { path: pathname, authorization, body, phone_number_id: id }, response)
  } else if (request.method === 'GET' && edge === 'message_templates') {
    reply(response, { status: 200, body: templatePage(state.options, searchParams, pathname) })
  } else {
    reply(response, { status: 404, body: cloudError(100, 'Unknown path components') })
  }
}

type Asked = { request: IncomingMessage; id: string; edge: string | undefined; searchParams: URLSearchParams }

/** Responds to a request about an account or one of its numbers. @returns false if no account has it. */
function answerOfAccount(
  { options }: State,
  { request, id, edge, searchParams }: Asked,
  response: ServerResponse,
): boolean {
  const { accounts = [], page_size } = options
  if (accounts.length === 0) return false
  const token = request.headers.authorization?.replace('Bearer ', '')
  const own = accounts.filter((account) => account.token === token)
  const isKnown = accounts.some(
    (account) => account.id === id || account.numbers.some((each) => each.id === id),
  )
  if (own.length === 0 && !isKnown && id !== 'debug_token') return false
  const rejected = { status: 401, body: cloudError(190, 'Invalid OAuth access token') }
  if (edge === 'messages') {
    const isOpen =
      !accounts.some(({ numbers }) => numbers.some((number) => number.id === id)) || own.length > 0
    if (!isOpen) reply(response, rejected)
    return !isOpen
  }
  if (id === 'debug_token') {
    reply(response, own[0] ? { status: 200, body: { data: { app_id: own[0].app_id } } } : rejected)
    return true
  }
  const number = own.flatMap(({ numbers }) => numbers).find((each) => each.id === id)
  const account = own.find((each) => each.id === id)
  if (number && edge === undefined) reply(response, { status: 200, body: number })
  else if (account) reply(response, edgeOf(account, request.method, edge, { searchParams, page_size }))
  else reply(response, own.length > 0 ? { status: 400, body: cloudError(100, 'Unknown object') } : rejected)
  return true
}

/** Returns the response of an account's edge. */
function edgeOf(
  account: CloudAccount,
  method: string | undefined,
  edge: string | undefined,
  { searchParams, page_size }: { searchParams: URLSearchParams; page_size: number | undefined },
): CloudAnswer {
  if (edge === 'phone_numbers') return { status: 200, body: { data: account.numbers } }
  if (edge === 'subscribed_apps') {
    if (method === 'POST') {
      account.subscribed = true
      account.subscriptions = (account.subscriptions ?? 0) + 1
      return { status: 200, body: { success: true } }
    }
    const apps = [...(account.other_apps ?? []), ...(account.subscribed ? [account.app_id] : [])]
    return { status: 200, body: { data: apps.map((id) => ({ whatsapp_business_api_data: { id } })) } }
  }
  if (edge === 'message_templates') {
    const options = { port: 0, templates: account.templates, ...(page_size ? { page_size } : {}) }
    return { status: 200, body: templatePage(options, searchParams, `/${account.id}/message_templates`) }
  }
  return { status: 404, body: cloudError(100, 'Unknown path components') }
}

type Given = { path: string; authorization: string; body: CloudRequest; phone_number_id: string }

async function take(state: State, given: Given, response: ServerResponse): Promise<void> {
  const { script = {}, most = MOST } = state.options
  const { phone_number_id, ...request } = given
  const mark = String(request.body.biz_opaque_callback_data)
  const tries = state.tries.get(mark) ?? 0
  state.tries.set(mark, tries + 1)
  const id = `wamid.${randomBytes(24).toString('base64url')}`
  const message = { id, received_at: new Date().toISOString(), ...request, tries, status: 'accepted' }
  state.kept.push(message)
  remember(state, message)
  const oldest = state.kept.length > most ? state.kept.shift() : undefined
  if (oldest) state.keep.remove(nameOf(oldest))
  const answer = await script.onMessage?.(message)
  if (answer !== undefined) {
    message.status = 'refused'
    remember(state, message)
    reply(response, answer)
    return
  }
  reply(response, { status: 200, body: takenAs(message) })
  report(state, phone_number_id, message, script.reports?.(message) ?? []).catch(() => undefined)
}

const takenAs = ({ id, body }: CloudMessage): Json => ({
  messaging_product: 'whatsapp',
  contacts: [{ input: body.to, wa_id: String(body.to).slice(1) }],
  messages: [{ id, message_status: 'accepted' }],
})

function reply(response: ServerResponse, answer: CloudAnswer): void {
  if (answer === 'hang') return
  if (answer === 'reset') {
    response.socket?.resetAndDestroy()
  } else if (answer === 'cut') {
    response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': 1_000 })
    response.write('{"messages":[{"id":"wam', () => response.socket?.destroy())
  } else {
    response.writeHead(answer.status, { 'Content-Type': 'application/json', ...answer.headers })
    response.end(typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body))
  }
}

function templatePage(
  { templates = [], page_size = 25 }: WhatsappSandboxOptions,
  query: URLSearchParams,
  path: string,
): Json {
  const from = Number(query.get('after') ?? 0)
  const to = from + Math.min(page_size, Number(query.get('limit') ?? page_size))
  const more = to < templates.length
  return {
    data: templates.slice(from, to),
    paging: {
      cursors: { before: String(from), after: String(to) },
      ...(more ? { next: `https://graph.facebook.com${path}?after=${to}` } : {}),
    },
  }
}

/** Reports statuses one by one, each in the next webhook that leaves. */
async function report(
  state: State,
  phone_number_id: string,
  message: CloudMessage,
  statuses: readonly CloudStatus[],
): Promise<void> {
  const { signal } = state.closing
  for (const one of statuses) {
    await sleep(state.options.report_pause ?? REPORT_PAUSE, undefined, { signal, ref: false })
    message.status = one.status
    remember(state, message)
    state.waiting.push({ phone_number_id, status: statusOf(message, one) })
    state.posting ??= postWaiting(state).finally(() => {
      state.posting = null
    })
  }
}

/** Posts one webhook of a number at a time, with everything that has accumulated. */
async function postWaiting(state: State): Promise<void> {
  while (state.waiting.length > 0) {
    const batch = state.waiting.splice(0, MAX_STATUSES)
    for (const [id, those] of Map.groupBy(batch, ({ phone_number_id }) => phone_number_id))
      await post(
        state,
        statusWebhook(
          id,
          those.map(({ status }) => status),
        ),
      )
  }
}

/** Posts a webhook until it is accepted, like the provider, only faster. */
async function post({ options, closing }: State, body: unknown): Promise<void> {
  const { webhook } = options
  if (!webhook) return
  const raw = JSON.stringify(body)
  const headers = {
    'Content-Type': 'application/json',
    'X-Hub-Signature-256': hubSignature(webhook.app_secret, raw),
  }
  for (let repeat = 0; repeat < REPEATS; repeat++) {
    const answer = await fetch(webhook.url, {
      method: 'POST',
      headers,
      body: raw,
      signal: closing.signal,
    }).catch(() => null)
    await answer?.body?.cancel()
    if (answer?.ok) return
    await sleep(500 * (repeat + 1), undefined, { signal: closing.signal, ref: false })
  }
}
