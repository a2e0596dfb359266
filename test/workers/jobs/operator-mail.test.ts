/** Forwarding of mail to postmaster@ and abuse@ to the operator. Real workers and SMTP, and two parsers. */
import { simpleParser } from 'mailparser'
import PostalMime from 'postal-mime'
import { createWorkerStats, type WorkerStats } from '../../../workers/monitoring/stats.ts'
import { makeTeam, SMTP_REPORT_TOKEN } from '../../support/service.ts'
import { shareService } from '../../support/shared-service.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t, { type Test } from '../../support/tap.ts'
import { startWorker, until } from '../../support/worker.ts'

const renewed = await shareService(t)

const NOTICES = { from: 'Acme <service@example.com>', operator: 'op@example.net', site: null }

async function begin(
  t: Test,
  notices: { from: string | null; operator: string | null; site: null } = NOTICES,
) {
  const service = await renewed()
  await makeTeam(service)
  const sink = await startSmtpSink(t)
  const outcomes: string[] = []
  const stats: WorkerStats = {
    ...createWorkerStats(service.deps.metrics, 1),
    reported: (provider, outcome) => void outcomes.push(`${provider} ${outcome}`),
  }
  await startWorker(t, service, { smtp_url: sink.url, notices, stats })
  const post = async (to: string, text: string) =>
    service.call('POST', '/hooks/smtp', {
      headers: { Authorization: `Bearer ${SMTP_REPORT_TOKEN}`, 'Content-Type': 'message/rfc822' },
      raw: `Return-Path: <a@example.org>\r\nDelivered-To: ${to}\r\n${text}`,
    })
  return { service, sink, outcomes, post }
}

const MAIL = 'From: Ana <a@example.org>\r\nSubject: =?utf-8?Q?Sp=C3=A4m?=\r\n\r\nYou sent me spam.\r\n'

t.test('mail to abuse@ and postmaster@ reaches the operator', async (t) => {
  const { sink, outcomes, post } = await begin(t)
  for (const name of ['abuse', 'postmaster']) {
    t.equal((await post(`${name}@bounces.example.com`, MAIL)).status, 200)
    await until('it arrives', async () => sink.messages().length > 0)
    const { raw, rcpt_to } = sink.last()
    t.strictSame(rcpt_to, ['op@example.net'])
    t.match(raw.toString('latin1'), /^You sent me spam\.\r$/m, 'not in base64')
    const read = await simpleParser(raw)
    t.equal(read.subject, 'Späm')
    t.equal(read.from?.value[0]?.address, 'service@example.com')
    const other = await PostalMime.parse(raw, { forceRfc822Attachments: true })
    const attached = other.attachments.find(({ mimeType }) => mimeType === 'message/rfc822')
    t.match(Buffer.from(attached?.content as ArrayBuffer).toString(), /You sent me spam\./)
    sink.clear()
  }
  t.strictSame(outcomes, ['smtp ignored', 'smtp ignored'])
})

t.test('mail to fbl@ is not forwarded', async (t) => {
  const { sink, outcomes, post } = await begin(t)
  await post('fbl@bounces.example.com', MAIL)
  await until('it is counted', async () => outcomes.length === 1)
  await post('abuse@bounces.example.com', `X-Mail: other\r\n${MAIL}`)
  const arrived = () => sink.messages().map(({ raw }) => raw.toString('latin1'))
  await until('the other one arrives', () => arrived().some((raw) => raw.includes('X-Mail: other')))
  t.equal(arrived().length, 1)
})

t.test('at most 20 are forwarded in an hour', async (t) => {
  const { sink, outcomes, post } = await begin(t)
  for (let count = 0; count < 25; count++)
    await post('abuse@bounces.example.com', `X-Count: ${count}\r\n${MAIL}`)
  await until('all are counted', async () => outcomes.length === 25)
  await until('they arrive', async () => sink.messages().length === 20)
  await post('abuse@bounces.example.com', `X-Count: 25\r\n${MAIL}`)
  await until('the next is counted', async () => outcomes.length === 26)
  t.equal(sink.messages().length, 20)
})

for (const lacking of ['from', 'operator'] as const)
  t.test(`without ${lacking} mail is only counted`, async (t) => {
    const { sink, outcomes, post } = await begin(t, { ...NOTICES, [lacking]: null })
    await post('abuse@bounces.example.com', MAIL)
    await until('it is counted', async () => outcomes.length === 1)
    t.equal(sink.messages().length, 0)
  })
