/**
 * The load during an upgrade: single and scheduled sends, bulk contacts, reports of arrivals, and an owner
 * who opens pages. Everything goes to any web process. It is repeated after a lost response or a 503, as
 * clients and mail servers do.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { deliveryStatus } from '../sandbox/reports.ts'
import { visitor } from '../support/dashboard.ts'
import { messageIdOf, type SmtpSink, type Teardown } from '../support/smtp-sink.ts'
import type { LivedIn } from './lived-in.ts'

/** Every fifth send is for a later time: how much later, in milliseconds. */
const SCHEDULED = { every: 5, wait: 3_000 }
/** Every fourth mail comes back. */
const BOUNCED = { every: 4 }
/** For how long a client repeats what got no answer or 503, in milliseconds. */
const PATIENCE = 60_000
const BULK = 50
const PAUSE = 200

export const REPORT_TOKEN = 'upgrade-reports-0123456789'

type Place = { bases: readonly string[]; sink: SmtpSink; livedIn: LivedIn; rate: number }

export type Load = Awaited<ReturnType<typeof startLoad>>

export async function startLoad(t: Teardown, { bases, sink, livedIn, rate }: Place) {
  const met = new Map<string, number>()
  const note = (what: string): void => void met.set(what, (met.get(what) ?? 0) + 1)
  const doing = new Set<Promise<void>>()
  let turn = 0
  let running = true

  /**
   * Repeats a request until its final response.
   * @returns the response. Null if the request was rejected or timed out.
   */
  async function insist(kind: string, path: string, init: RequestInit): Promise<Response | null> {
    for (const end = Date.now() + PATIENCE; Date.now() < end; await sleep(PAUSE)) {
      const answer = await fetch(`${bases[turn++ % bases.length]}${path}`, {
        redirect: 'manual',
        ...init,
      }).catch(() => null)
      note(`${kind} ${answer?.status ?? 'no answer'}`)
      if (answer?.ok) return answer
      await answer?.body?.cancel()
      if (answer && answer.status !== 503) return null
    }
    note(`${kind} given up`)
    return null
  }
  const call = async <B>(kind: string, path: string, body: unknown): Promise<B | null> => {
    const headers = { Authorization: `Bearer ${livedIn.key}`, 'Content-Type': 'application/json' }
    const answer = await insist(kind, path, { method: 'POST', headers, body: JSON.stringify(body) })
    return answer && ((await answer.json()) as B)
  }

  const accepted: string[] = []
  let sent = 0
  const send = async (): Promise<void> => {
    const number = sent++
    const later = number % SCHEDULED.every === 0
    const answer = await call<{ id: string }>('send', '/v1/emails', {
      ...{ from: 'hello@example.com', to: [`ana-${number}@example.org`], subject: 'Hello' },
      ...{ html: '<p>Hi</p>', idempotency_key: `upgrade-${number}` },
      ...(later ? { scheduled_at: new Date(Date.now() + SCHEDULED.wait).toISOString() } : {}),
    })
    if (answer) accepted.push(answer.id)
  }

  let imported = 0
  const upsert = async (): Promise<void> => {
    const contacts = Array.from({ length: BULK }, () => ({
      email: `import-${imported++}@example.net`,
      properties: { name: 'Ana' },
    }))
    await call('import', '/v1/contacts/bulk', { contacts })
  }

  /** The report of each email. */
  const reported = new Map<string, 'delivered' | 'bounced'>()
  let read = 0
  const report = async (): Promise<void> => {
    for (const message of sink.messages().slice(read)) {
      const number = read++
      const [recipient = ''] = message.rcpt_to
      const id = messageIdOf(message).split('@')[0] ?? ''
      if (!recipient.startsWith('ana-')) continue
      const status = number % BOUNCED.every === 0 ? 'bounced' : 'delivered'
      const fields =
        status === 'bounced'
          ? ({ action: 'failed', status: '5.1.1', diagnostic: '550 5.1.1 No such user' } as const)
          : ({ action: 'delivered', status: '2.0.0' } as const)
      const body = new Uint8Array(deliveryStatus(message, [{ recipient, ...fields }]))
      const headers = { Authorization: `Bearer ${REPORT_TOKEN}`, 'Content-Type': 'message/rfc822' }
      if (await insist('report', '/hooks/smtp', { method: 'POST', headers, body })) reported.set(id, status)
    }
  }

  const owner = visitor({ base: bases[0] ?? '' }, 'owner@example.com')
  const { status } = await owner.post(livedIn.login.replace(/^\/dashboard/, ''), { csrf: '' })
  if (status !== 303) throw new Error(`could not sign in: ${status}`)
  const pages = [
    '',
    '/emails',
    `/emails/${livedIn.old}`,
    '/contacts',
    '/broadcasts',
    '/webhooks',
    '/whatsapp',
  ]
  let looked = 0
  const look = async (): Promise<void> => {
    const Cookie = [...owner.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const page = pages[looked++ % pages.length]
    await (await insist('page', `/dashboard/teams/${livedIn.team}${page}`, { headers: { Cookie } }))?.text()
  }

  const again = (every: number, what: () => Promise<void>) => {
    const timer = setInterval(() => {
      const done = what().finally(() => doing.delete(done))
      doing.add(done)
    }, every)
    t.teardown(async () => clearInterval(timer))
    return () => clearInterval(timer)
  }
  const timers = [again(1_000 / rate, send), again(500, upsert), again(250, look)]
  // Also if a step fails.
  t.teardown(async () => {
    running = false
  })
  const reporting = (async () => {
    for (; running; await sleep(PAUSE)) await report()
  })()
  return {
    ...{ met, accepted, reported, call },
    sent: () => sent,
    imported: () => imported,
    /** Creates a broadcast to the audience and starts it. @returns its id. */
    async broadcast(): Promise<string> {
      const made = await call<{ id: string }>('broadcast', '/v1/broadcasts', livedIn.draft)
      await call('broadcast', `/v1/broadcasts/${made?.id}/send`, {})
      return made?.id ?? ''
    },
    /** Stops sending, and waits for the responses. */
    async stop(): Promise<void> {
      for (const stop of timers) stop()
      await Promise.all(doing)
    },
    /** Reports new arrivals a last time, and then stops. */
    async stopReports(): Promise<void> {
      running = false
      await reporting
      await report()
    },
  }
}
