// WhatsApp's settings of a worker (design §3, §5): a company that sends email only runs without them, half a set stops it.

import t from 'tap'
import { queuesOf, readWorkerSettings } from '../../workers/config.ts'

const BASE = {
  DATABASE_URL: 'postgres://localhost/x',
  SECRET_KEY: 'a secret key for tests, thirty-two characters or more',
  SMTP_URL: 'smtp://localhost',
}
const TOKEN = { WHATSAPP_ACCESS_TOKEN: 'x', WHATSAPP_PHONE_NUMBER_ID: '100000000000002' }
const isWhatsapp = (job: string): boolean => job.includes('whatsapp')

t.test(
  'without an access token a worker leaves the queues of WhatsApp alone and does all others',
  async (t) => {
    const without = queuesOf(readWorkerSettings(BASE))
    t.notOk(without.some(isWhatsapp))
    t.ok(without.includes('deliver-email'))
    const all = queuesOf(readWorkerSettings({ ...BASE, ...TOKEN }))
    t.same(all.filter(isWhatsapp), ['deliver-whatsapp', 'sync-whatsapp-templates'])
    t.same(
      all.filter((job) => !isWhatsapp(job)),
      without,
    )
  },
)

t.test(
  'half a set, or a queue of WhatsApp named without a token, stops with a message naming what is missing',
  async (t) => {
    const { WHATSAPP_PHONE_NUMBER_ID: _, ...half } = TOKEN
    t.throws(() => readWorkerSettings({ ...BASE, ...half }), /WHATSAPP_PHONE_NUMBER_ID is missing/)
    const named = { ...BASE, WORKER_QUEUES: 'deliver-email, deliver-whatsapp' }
    t.throws(() => readWorkerSettings(named), /WHATSAPP_ACCESS_TOKEN is missing/)
    t.same(queuesOf(readWorkerSettings({ ...named, ...TOKEN })), ['deliver-email', 'deliver-whatsapp'])
    t.throws(
      () => readWorkerSettings({ ...BASE, WHATSAPP_API_URL: 'graph.facebook.com' }),
      /WHATSAPP_API_URL must be/,
    )
  },
)

t.test(
  'the API is Meta’s, with its version, at 80 messages a second, unless settings say otherwise',
  async (t) => {
    t.match(readWorkerSettings({ ...BASE, ...TOKEN }), {
      WHATSAPP_API_URL: /^https:\/\/graph\.facebook\.com\/v\d+\.\d+$/,
      WHATSAPP_MESSAGES_PER_SECOND: 80,
      WHATSAPP_UNKNOWN_WAIT_SECONDS: 600,
    })
  },
)
