/** POST /hooks/ses: forged signatures are rejected, and certificates are only fetched from Amazon. */
import type { ServerResponse } from 'node:http'
import { createApp } from '../../../api/app.ts'
import { createSns } from '../../../api/hooks/sns.ts'
import { type Certificate, makeCertificate } from '../../support/certificate.ts'
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

async function begin(
  t: Test,
  { certificate = OURS, clock = service.deps.clock }: { certificate?: Certificate; clock?: () => Date } = {},
): Promise<Hook> {
  const sns = await startSns(t, certificate, OURS)
  const gate = createSns({ topics: [TOPIC], agent: sns.agent })
  const call = caller(
    await listen(t, createApp({ ...service.deps, hooks: { ...service.deps.hooks, sns: gate }, clock })),
  )
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
    ['the id', { MessageId: 'another' }],
    ['the time', { Timestamp: '2026-03-01T12:00:00.001Z' }],
    ['the subject', { Subject: 'Other' }],
    ['the version', { SignatureVersion: '1' }],
    ['the signature', { Signature: (genuine.Signature ?? '').replace(/^./, (c) => (c === 'A' ? 'B' : 'A')) }],
    ['no signature', { Signature: '' }],
    ['a signature that is no base64', { Signature: '%'.repeat(344) }],
    ['an unknown version', { SignatureVersion: '3' }],
    ['another type', { Type: 'UnsubscribeConfirmation' }],
  ]
  for (const [name, change] of changes)
    t.equal((await post(JSON.stringify({ ...genuine, ...change }))).status, 401, name)
  const { Subject: _gone, ...shorter } = genuine
  t.equal((await post(JSON.stringify(shorter))).status, 401, 'the subject removed')
  const { SigningCertURL: _url, ...nowhere } = genuine
  t.equal((await post(JSON.stringify(nowhere))).status, 401, 'no certificate')
  t.equal((await post(signed(OTHER, aNotification()))).status, 401, 'another key')
  t.strictSame(await stored(), [])
  t.strictSame(await jobs(), [])
})

t.test('the same fields in another serialization are still valid', async (t) => {
  const { sns, post } = await begin(t)
  const body = signed(sns.certificate, aNotification())
  t.equal((await post(JSON.stringify(JSON.parse(body)))).status, 200)
})

const CERTIFICATES = [
  `http://${SNS_HOST}/a.pem`,
  'https://sns.evil.com/a.pem',
  `https://${SNS_HOST}.evil.com/a.pem`,
  'https://evil.com/sns.eu-west-1.amazonaws.com/a.pem',
  `https://${SNS_HOST}@evil.com/a.pem`,
  `https://user@${SNS_HOST}/a.pem`,
  `https://user:pass@${SNS_HOST}/a.pem`,
  `https://${SNS_HOST}:8443/a.pem`,
  'https://127.0.0.1/a.pem',
  'https://169.254.169.254/latest/meta-data/a.pem',
  'https://[::1]/a.pem',
  'https://localhost/a.pem',
  'https://s3.amazonaws.com/bucket/a.pem',
  'https://sns.s3.amazonaws.com/a.pem',
  'https://bucket.s3.eu-west-1.amazonaws.com/a.pem',
  'https://sns.eu-west-1.s3.amazonaws.com/a.pem',
  'https://xsns.eu-west-1.amazonaws.com/a.pem',
  'https://sns.eu-west-1.amazonaws.com.cn/a.pem',
  'https://sns.us-east-1.amazonaws.com/a.pem',
  `https://${SNS_HOST}/a.pem?x=1`,
  `https://${SNS_HOST}/a.pem#x`,
  `https://${SNS_HOST}/a.txt`,
  `https://${SNS_HOST.toUpperCase()}/a.pem`,
  `https://${SNS_HOST}:443/a.pem`,
  ` https://${SNS_HOST}/a.pem`,
  `https://${SNS_HOST}/a/../../b/c.pem`,
  `https://${SNS_HOST}/%2e%2e/a.pem`,
  `https:\\\\evil.com\\${SNS_HOST}\\a.pem`,
  `https://evil.com\t.${SNS_HOST}/a.pem`,
  'file:///etc/a.pem',
  'data:application/x-pem-file,a.pem',
  'not a url',
]

t.test('never fetches a certificate outside SNS or the topic’s region', async (t) => {
  const { sns, post, stored } = await begin(t)
  for (const SigningCertURL of CERTIFICATES) {
    const answer = await post(signed(sns.certificate, aNotification({ SigningCertURL })))
    t.equal(answer.status, 401, SigningCertURL)
  }
  t.strictSame(sns.connections, [])
  t.strictSame(await stored(), [])
})

t.test('an unknown topic is rejected before anything is fetched', async (t) => {
  const { sns, post } = await begin(t)
  const topics = [
    'arn:aws:sns:eu-west-1:999999999999:ses-events',
    `${TOPIC}-x`,
    TOPIC.toUpperCase(),
    '',
    'arn:aws:sns:eu-west-1:123456789012:',
  ]
  for (const TopicArn of topics) {
    t.equal((await post(signed(sns.certificate, aNotification({ TopicArn })))).status, 401, TopicArn)
    t.equal((await post(signed(sns.certificate, aConfirmation({ TopicArn })))).status, 401, TopicArn)
  }
  t.strictSame(sns.connections, [])
})

t.test('without configured topics every post is rejected', async (t) => {
  const { certificate } = await startSns(t, OURS)
  const answer = await service.call('POST', '/hooks/ses', {
    raw: signed(certificate, aNotification()),
    headers: { 'Content-Type': 'text/plain' },
  })
  t.equal(answer.status, 401)
})

t.test('an invalid envelope is rejected without a fetch', async (t) => {
  const { sns, post } = await begin(t)
  const junk = [
    '',
    '{}',
    '[]',
    'null',
    '"x"',
    'hello',
    '{"Type":',
    '\u0000',
    JSON.stringify({ Type: 'Notification' }),
  ]
  for (const body of junk) t.equal((await post(body)).status, 401, body)
  t.equal((await post(new Uint8Array([0xff, 0xfe, 0x7b]))).status, 401, 'not UTF-8')
  const typed = { ...JSON.parse(signed(sns.certificate, aNotification())), Message: { a: 1 } }
  t.equal((await post(JSON.stringify(typed))).status, 401, 'a message that is no text')
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
  const query = new URL(aConfirmation().SubscribeURL ?? '').search
  const { Token } = aConfirmation()
  const urls = [
    `http://${SNS_HOST}/${query}`,
    `https://evil.com/${query}`,
    `https://${SNS_HOST}.evil.com/${query}`,
    `https://user@${SNS_HOST}/${query}`,
    `https://${SNS_HOST}:444/${query}`,
    `https://sns.us-east-1.amazonaws.com/${query}`,
    `https://169.254.169.254/${query}`,
    `https://${SNS_HOST}/x${query}`,
    `https://${SNS_HOST}/?Action=DeleteTopic&TopicArn=${TOPIC}&Token=${Token}`,
    `https://${SNS_HOST}/?Action=ConfirmSubscription&TopicArn=${TOPIC}2&Token=${Token}`,
    `https://${SNS_HOST}/?Action=ConfirmSubscription&TopicArn=${TOPIC}&Token=other`,
  ]
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
    t.equal(answer.status, 503, body)
    t.equal(sns.connections.filter((to) => !to.startsWith(SNS_HOST)).join(), '')
  }
})

t.test('an unavailable certificate is 503, and a retry succeeds', async (t) => {
  const { sns, post } = await begin(t)
  const faults = [
    (response: ServerResponse) => void response.writeHead(500).end(),
    (response: ServerResponse) => void response.destroy(),
    (response: ServerResponse) => void response.end('x'.repeat(70_000)),
  ]
  for (const fault of faults) {
    sns.onRequest((_request, response) => {
      fault(response)
      return true
    })
    t.match(await post(signed(sns.certificate, aNotification())), {
      status: 503,
      body: { error: { code: 'unavailable' } },
    })
  }
  sns.onRequest((_request, response) => {
    response.end('no certificate')
    return true
  })
  t.equal((await post(signed(sns.certificate, aNotification()))).status, 401, 'what is none')
  sns.onRequest(() => false)
  t.equal((await post(signed(sns.certificate, aNotification()))).status, 200)
})

t.test('an expired certificate is rejected, even if it is cached', async (t) => {
  const expired = makeCertificate([SNS_HOST], { expires: new Date(Date.now() - 1_000) })
  const { post } = await begin(t, { certificate: expired })
  t.equal((await post(signed(expired, aNotification()))).status, 401)

  let now = Date.now()
  const short = makeCertificate([SNS_HOST], { expires: new Date(now + 60_000) })
  const hook = await begin(t, { certificate: short, clock: () => new Date(now) })
  t.equal((await hook.post(signed(short, aNotification()))).status, 200)
  now += 61_000
  t.equal((await hook.post(signed(short, aNotification()))).status, 401)
  hook.sns.onRequest((_request, response) => {
    response.end(OTHER.pem)
    return true
  })
  t.equal((await hook.post(signed(OTHER, aNotification()))).status, 200, 'its successor does')
})

t.test('at most four certificates are fetched at once', async (t) => {
  const { sns, post } = await begin(t)
  let open = 0
  let most = 0
  sns.onRequest((_request, response) => {
    most = Math.max(most, ++open)
    setTimeout(() => {
      open--
      response.writeHead(404).end()
    }, 50)
    return true
  })
  const forge = async (n: number) =>
    (await post(signed(OTHER, aNotification({ SigningCertURL: `https://${SNS_HOST}/n${n}.pem` })))).status
  const statuses = await Promise.all(Array.from({ length: 30 }, (_, n) => forge(n)))
  t.ok(statuses.every((status) => status === 503))
  t.ok(most <= 4, `${most} at once`)
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
