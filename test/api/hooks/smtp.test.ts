/** POST /hooks/smtp: the token is checked before anything is stored. */
import { returnPath } from '../../../db/messages/emails/return-path.ts'
import { createSecrets } from '../../../db/process/secrets.ts'
import { SECRET_KEY } from '../../support/environment.ts'
import { jobsIn, storedReports } from '../../support/reports.ts'
import { METRICS_TOKEN, type Service, SMTP_REPORT_TOKEN } from '../../support/service.ts'
import { shareService } from '../../support/shared-service.ts'
import t from '../../support/tap.ts'

const renewed = await shareService(t)

const REF = { team_id: '0190a1b2-0000-7000-8000-00000000000a', id: '0190a1b2-0000-7000-8000-00000000000b' }
const OURS = returnPath(createSecrets(SECRET_KEY), REF, 'bounces.example.com') ?? ''
const RAW = Buffer.from(
  `From: mailer@relay.test\r\nTo: ${OURS}\r\nSubject: bytes \xe9\x00\xff\r\n\r\nnot mail\r\n`,
  'latin1',
)
const TYPE = { 'Content-Type': 'message/rfc822' }

const post = async ({ call }: Service, authorization: string | null, raw: Uint8Array = RAW) =>
  await call('POST', '/hooks/smtp', {
    raw,
    headers: { ...TYPE, ...(authorization === null ? {} : { Authorization: authorization }) },
  })

t.test('stores a report unchanged with its job before the response', async (t) => {
  const service = await renewed()
  const { status } = await post(service, `Bearer ${SMTP_REPORT_TOKEN}`)
  t.equal(status, 200)
  const [report, ...others] = await storedReports(service)
  t.same(others, [])
  t.match(report, { provider: 'smtp', state: 'pending', reason: null })
  t.ok(report?.body.equals(RAW), 'the very bytes')
  t.same(await jobsIn(service, 'ingest-report'), [{ report_id: report?.id }])
})

t.test('a repeated report is accepted and stored once', async (t) => {
  const service = await renewed()
  const statuses = await Promise.all(
    Array.from({ length: 20 }, async () => (await post(service, `Bearer ${SMTP_REPORT_TOKEN}`)).status),
  )
  t.same(new Set(statuses), new Set([200]))
  t.equal((await storedReports(service)).length, 1)
  t.equal((await jobsIn(service, 'ingest-report')).length, 1)
})

t.test('an invalid token is 401 and stores nothing', async (t) => {
  const service = await renewed()
  const forged = [
    null,
    '',
    'Bearer',
    'Bearer ',
    `Basic ${SMTP_REPORT_TOKEN}`,
    `Bearer ${SMTP_REPORT_TOKEN}x`,
    `Bearer ${SMTP_REPORT_TOKEN.slice(0, -1)}`,
    `Bearer ${SMTP_REPORT_TOKEN.toUpperCase()}`,
    `Bearer ${SMTP_REPORT_TOKEN} ${SMTP_REPORT_TOKEN}`,
  ]
  for (const authorization of forged) {
    const { status, body } = await post(service, authorization)
    t.equal(status, 401, String(authorization))
    t.match(body, { error: { code: 'unauthorized' } })
  }
  service.deps.hooks.smtp_report_token = null
  t.teardown(() => {
    service.deps.hooks.smtp_report_token = SMTP_REPORT_TOKEN
  })
  t.equal((await post(service, `Bearer ${SMTP_REPORT_TOKEN}`)).status, 401, 'not configured')
  t.equal((await post(service, 'Bearer null')).status, 401, 'not configured')
  t.same(await storedReports(service), [])
  t.same(await jobsIn(service, 'ingest-report'), [])
})

t.test('a body must have 1 byte to 10 MiB', async (t) => {
  const service = await renewed()
  const authorization = `Bearer ${SMTP_REPORT_TOKEN}`
  const limit = 10 * 1024 * 1024
  t.equal((await post(service, authorization, Buffer.concat([RAW], limit))).status, 200)
  t.equal((await post(service, authorization, Buffer.alloc(limit + 1, 'x'))).status, 413)
  t.equal((await post(service, authorization, Buffer.alloc(0))).status, 400)
  t.equal((await storedReports(service)).length, 1)
  t.equal((await service.call('GET', '/hooks/smtp')).status, 405)
})

t.test('mail without our signed return address is dropped and counted', async (t) => {
  const service = await renewed()
  const authorization = `Bearer ${SMTP_REPORT_TOKEN}`
  const forged = OURS.replace(/.@/, (digit) => (digit === '0@' ? '1@' : '0@'))
  const foreign =
    returnPath(createSecrets('another key, as long as a key should be'), REF, 'example.com') ?? ''
  const spam = [
    'Subject: Buy now\r\n\r\nspam\r\n',
    `To: ${forged}\r\n\r\n`,
    `To: ${foreign}\r\n\r\n`,
    `To: b-${'0'.repeat(62)}@bounces.example.com\r\n\r\n`,
    `${'x'.repeat(600 * 1024)}\r\nTo: ${OURS}\r\n\r\n`,
  ]
  for (const text of spam) {
    const { status, body } = await post(service, authorization, Buffer.from(text))
    t.equal(status, 200, 'a refusal would come back to whom the spam claims to be from')
    t.same(body, { status: 'dropped' })
  }
  t.same(await storedReports(service), [])
  const { body: figures } = await service.call('GET', '/metrics', { key: METRICS_TOKEN })
  t.match(figures, /^heliograph_reports_total\{provider="smtp",outcome="ignored"\} 5$/m)
  const folded = `Subject: a part in quoted-printable\r\n\r\nReturn-Path: <${OURS.slice(0, 60)}=\r\n${OURS.slice(60).replace('@', '=40')}>\r\n`
  t.same((await post(service, authorization, Buffer.from(folded))).body, { status: 'taken' })
})
