/** POST /hooks/ses: forged signatures are rejected, and certificates are only fetched from Amazon. */
import { createApp } from '../../../api/app.ts'
import { createSns } from '../../../api/hooks/sns.ts'
import { makeCertificate } from '../../support/certificate.ts'
import { jobsIn, storedReports } from '../../support/reports.ts'
import { type Call, caller, listen, startService } from '../../support/service.ts'
import {
  aConfirmation,
  aNotification,
  type Fields,
  SNS_HOST,
  type SnsStandIn,
  signed,
  startSns,
  TOPIC,
} from '../../support/sns.ts'
import t, { type Test } from '../../support/tap.ts'

type Hook = {
  sns: SnsStandIn
  post: (raw: string | Uint8Array, type?: string) => ReturnType<Call>
  /** Returns the reports and jobs that this test has stored. */
  stored: () => Promise<Awaited<ReturnType<typeof storedReports>>>
  jobs: () => Promise<unknown[]>
}

const OURS = makeCertificate([SNS_HOST])
const OTHER = makeCertificate([SNS_HOST])
const service = await startService(t)

async function begin(t: Test): Promise<Hook> {
  const sns = await startSns(t, OURS)
  const hooks = { ...service.deps.hooks, sns: createSns({ topics: [TOPIC], agent: sns.agent }) }
  const call = caller(await listen(t, createApp({ ...service.deps, hooks })))
  const before = (await storedReports(service)).length
  const jobs_before = (await jobsIn(service, 'ingest-report')).length
  return {
    sns,
    post: async (raw, type = 'text/plain; charset=UTF-8') =>
      await call('POST', '/hooks/ses', { raw, headers: { 'Content-Type': type } }),
    stored: async () => (await storedReports(service)).slice(before),
    jobs: async () => (await jobsIn(service, 'ingest-report')).slice(jobs_before),
  }
}

t.test('a signed notification is stored unchanged, with its job, once', async (t) => {
  const { sns, post, stored, jobs } = await begin(t)
  const body = signed(sns.certificate, aNotification({ Message: '{"a":"é \\u2028"}\n' }))
  t.match(await post(body), { status: 200, body: { status: 'taken' } })
  const [report] = await stored()
  t.match(report, { provider: 'ses', event_key: JSON.parse(body).MessageId })
  t.strictSame(report?.body.toString(), body)
  t.equal((await jobs()).length, 1)
  t.match(await post(body), { status: 200, body: { status: 'repeated' } })
  t.equal((await stored()).length, 1)
  t.equal((await jobs()).length, 1)
})

t.test('accepts both signature versions, any subject, text or JSON', async (t) => {
  const { sns, post, stored } = await begin(t)
  for (const SignatureVersion of ['1', '2']) {
    for (const type of ['text/plain; charset=UTF-8', 'application/json']) {
      const { Subject: _none, ...bare } = aNotification({ SignatureVersion })
      t.equal((await post(signed(sns.certificate, aNotification({ SignatureVersion })), type)).status, 200)
      t.equal((await post(signed(sns.certificate, bare), type)).status, 200)
    }
  }
  t.equal((await stored()).length, 8)
  t.strictSame(sns.connections, [`${SNS_HOST}:443`], 'the certificate is fetched once')
})

t.test('accepts a topic’s test message', async (t) => {
  const { sns, post } = await begin(t)
  const Message = 'Successfully validated SNS topic for Amazon SES event publishing.'
  t.equal((await post(signed(sns.certificate, aNotification({ Message })))).status, 200)
})

t.test('changed bytes and other keys are 401 and store nothing', async (t) => {
  const { sns, post, stored, jobs } = await begin(t)
  const body = signed(sns.certificate, aNotification())
  const genuine: Fields = JSON.parse(body)
  const changes: [string, Fields][] = [
    ['the message', { Message: `${genuine.Message} ` }],
    ['the version', { SignatureVersion: '1' }],
    ['the signature', { Signature: (genuine.Signature ?? '').replace(/^./, (c) => (c === 'A' ? 'B' : 'A')) }],
    ['another type', { Type: 'UnsubscribeConfirmation' }],
  ]
  for (const [name, change] of changes)
    t.equal((await post(JSON.stringify({ ...genuine, ...change }))).status, 401, name)
  t.equal((await post(signed(OTHER, aNotification()))).status, 401, 'another key')
  t.strictSame(await stored(), [])
  t.strictSame(await jobs(), [])
})

t.test('the same fields in another serialization are still valid', async (t) => {
  const { sns, post } = await begin(t)
  const body = signed(sns.certificate, aNotification())
  t.equal((await post(JSON.stringify(JSON.parse(body)))).status, 200)
})

t.test('never fetches a certificate outside SNS or the topic’s region', async (t) => {
  const { sns, post, stored } = await begin(t)
  for (const host of ['sns.evil.com', 'sns.us-east-1.amazonaws.com']) {
    const SigningCertURL = `https://${host}/a.pem`
    t.equal((await post(signed(sns.certificate, aNotification({ SigningCertURL })))).status, 401, host)
  }
  t.strictSame(sns.connections, [])
  t.strictSame(await stored(), [])
})

t.test('an unknown topic is rejected before anything is fetched', async (t) => {
  const { sns, post } = await begin(t)
  for (const TopicArn of ['arn:aws:sns:eu-west-1:999999999999:ses-events', `${TOPIC}-x`]) {
    t.equal((await post(signed(sns.certificate, aNotification({ TopicArn })))).status, 401, TopicArn)
    t.equal((await post(signed(sns.certificate, aConfirmation({ TopicArn })))).status, 401, TopicArn)
  }
  t.strictSame(sns.connections, [])
})

t.test('an invalid envelope is rejected without a fetch', async (t) => {
  const { sns, post } = await begin(t)
  for (const body of ['', JSON.stringify({ Type: 'Notification' })])
    t.equal((await post(body)).status, 401, body)
  t.equal((await post(signed(sns.certificate, aNotification()), 'application/xml')).status, 415)
  t.strictSame(sns.connections, [])
})

t.test('a post above the size limit is rejected', async (t) => {
  const { sns, post, stored } = await begin(t)
  const Message = 'x'.repeat(1024 * 1024)
  t.equal((await post(signed(sns.certificate, aNotification({ Message })))).status, 413)
  t.strictSame(sns.connections, [])
  t.strictSame(await stored(), [])
})

t.test('a subscription is confirmed only after its signature was verified', async (t) => {
  const { sns, post, stored } = await begin(t)
  const wish = aConfirmation()
  t.match(await post(signed(sns.certificate, wish)), { status: 200, body: { status: 'confirmed' } })
  const path = new URL(wish.SubscribeURL ?? '')
  t.strictSame(sns.requests, ['/SimpleNotificationService-0123456789abcdef.pem', path.pathname + path.search])
  const forged = [
    signed(OTHER, aConfirmation()),
    signed(sns.certificate, wish, { Token: 'other' }),
    signed(sns.certificate, wish, { Message: 'other' }),
  ]
  for (const body of forged) t.equal((await post(body)).status, 401)
  t.equal(sns.requests.length, 2, 'nothing more was asked for')
  t.strictSame(await stored(), [])
})

t.test('a signed confirmation with any other URL is rejected', async (t) => {
  const { sns, post } = await begin(t)
  const { search } = new URL(aConfirmation().SubscribeURL ?? '')
  const urls = [`https://evil.com/${search}`, `https://${SNS_HOST}/x${search}`]
  for (const SubscribeURL of urls)
    t.equal((await post(signed(sns.certificate, aConfirmation({ SubscribeURL })))).status, 401, SubscribeURL)
  t.strictSame(sns.connections, [])
})

t.test('redirects aren’t followed', async (t) => {
  for (const body of ['certificate', 'confirmation']) {
    const { sns, post } = await begin(t)
    sns.onRequest(({ url }, response) => {
      const hit = url?.endsWith('.pem') === (body === 'certificate')
      if (hit) response.writeHead(302, { Location: 'https://169.254.169.254/a.pem' }).end()
      return hit
    })
    const answer = await post(signed(sns.certificate, aConfirmation()))
    t.match(answer, { status: 503, body: { error: { code: 'unavailable' } } }, body)
    t.equal(sns.connections.filter((to) => !to.startsWith(SNS_HOST)).join(), '')
  }
})

t.test('the end of a subscription is accepted without a request', async (t) => {
  const { sns, post, stored } = await begin(t)
  const body = signed(
    sns.certificate,
    aConfirmation({ Type: 'UnsubscribeConfirmation', SignatureVersion: '2' }),
  )
  t.match(await post(body), { status: 200, body: { status: 'noted' } })
  t.equal(sns.requests.length, 1, 'the certificate only')
  t.strictSame(await stored(), [])
})
