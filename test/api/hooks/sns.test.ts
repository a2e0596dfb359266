/** The certificates of SNS: which are valid, when, and how long they are cached. ses.test.ts has posts. */
import type { ServerResponse } from 'node:http'
import { createSns } from '../../../api/hooks/sns.ts'
import type { SnsEnvelope } from '../../../api/hooks/sns-envelope.ts'
import { type Certificate, makeCertificate } from '../../support/certificate.ts'
import {
  aConfirmation,
  aNotification,
  type Fields,
  SNS_HOST,
  signed,
  startSns,
  TOPIC,
} from '../../support/sns.ts'
import t, { type Test } from '../../support/tap.ts'

const OURS = makeCertificate([SNS_HOST])
const NOW = new Date()

/** How SNS responds to a request. */
type Answer = (response: ServerResponse) => unknown

/** Starts SNS, and returns how posts of our topic are verified. */
async function begin(t: Test, certificate: Certificate = OURS) {
  const sns = await startSns(t, certificate, OURS)
  const { authenticate, confirm } = createSns({ topics: [TOPIC], agent: sns.agent })
  const of = async (taken: Promise<void>) =>
    await taken.then(
      () => 'taken',
      ({ code, message, retry_after = '' }) => `${code} ${retry_after} ${message}`,
    )
  const take = (fields: Fields, now = NOW) =>
    of(authenticate(JSON.parse(signed(certificate, fields)) as SnsEnvelope, now))
  const answer = (act: Answer) =>
    sns.onRequest((_request, response) => {
      act(response)
      return true
    })
  return { ...sns, answer, take, confirm: (fields: Fields) => of(confirm(fields as unknown as SnsEnvelope)) }
}

/** A notification whose certificate has another path at SNS. */
const at = (path: string) => aNotification({ SigningCertURL: `https://${SNS_HOST}${path}` })

const FOREIGN = 'unauthorized  This endpoint only accepts messages from the SNS topics in its settings.'
const UNFETCHED = 'unavailable 20 Could not fetch the certificate of SNS. Try again later.'

t.test('listens only if a topic is configured', async (t) => {
  t.equal(createSns({ topics: [] }).listens, false)
  t.equal(createSns({ topics: [TOPIC] }).listens, true)
})

t.test('a certificate is valid from first to last second', async (t) => {
  const second = Math.floor(NOW.getTime() / 1_000) * 1_000
  const [from, until] = [new Date(second - 60_000), new Date(second + 60_000)]
  const { take, requests } = await begin(t, makeCertificate([SNS_HOST], { begins: from, expires: until }))
  t.equal(await take(aNotification(), new Date(from.getTime() - 1)), FOREIGN, 'not yet')
  t.equal(await take(aNotification(), from), 'taken')
  t.equal(await take(aNotification(), until), 'taken')
  t.equal(requests.length, 1, 'fetched once')
  t.equal(await take(aNotification(), new Date(until.getTime() + 1)), FOREIGN, 'no longer')
  t.equal(requests.length, 2, 'its successor may be there')
})

t.test('a key that isn’t RSA is rejected', async (t) => {
  const { take } = await begin(t, makeCertificate([SNS_HOST], { type: 'ec' }))
  t.equal(await take(aNotification()), FOREIGN)
})

t.test('fetches a certificate once, and caches 20', async (t) => {
  const { take, requests } = await begin(t)
  t.strictSame(await Promise.all([take(at('/n0.pem')), take(at('/n0.pem'))]), ['taken', 'taken'])
  t.strictSame(requests, ['/n0.pem'])
  const others = Array.from({ length: 19 }, (_, n) => `/n${n + 1}.pem`)
  for (const path of others) await take(at(path))
  t.strictSame(requests, ['/n0.pem', ...others])
  await take(at('/n0.pem'))
  t.equal(requests.length, 20, 'still known')
  for (const path of ['/n20.pem', '/n1.pem', '/n0.pem']) await take(at(path))
  t.strictSame(requests.slice(20), ['/n20.pem', '/n0.pem'], 'the oldest was let go, and no other')
})

t.test('an incomplete certificate is fetched again by the next post', async (t) => {
  const { take, answer, requests } = await begin(t)
  const faults: Answer[] = [
    (response) => response.writeHead(404).end(OURS.pem),
    (response) => response.destroy(),
    (response) =>
      response.writeHead(200, { 'Content-Length': '70000' }).write(OURS.pem, () => response.destroy()),
    (response) => response.end(OURS.pem.padEnd(64 * 1024 + 1)),
  ]
  for (const [nth, fault] of faults.entries()) {
    answer(fault)
    t.equal(await take(aNotification()), UNFETCHED, `fault ${nth}`)
  }
  answer((response) => response.end('no certificate'))
  t.equal(await take(aNotification()), FOREIGN)
  answer((response) => response.end(OURS.pem.padEnd(64 * 1024)))
  t.equal(await take(aNotification()), 'taken')
  t.equal(requests.length, 6)
})

t.test('a fifth concurrent fetch is rejected with Retry-After', async (t) => {
  const { take, answer } = await begin(t)
  const held: ServerResponse[] = []
  const full = Promise.withResolvers<void>()
  answer((response) => {
    if (held.push(response) === 4) full.resolve()
  })
  const four = [1, 2, 3, 4].map((n) => take(at(`/n${n}.pem`)))
  await full.promise
  const fifth = await take(at('/n5.pem'))
  t.equal(fifth, 'unavailable 20 Too many certificates are being fetched. Try again later.')
  for (const response of held) response.end(OURS.pem)
  t.strictSame(await Promise.all(four), Array(4).fill('taken'))
  answer((response) => response.end(OURS.pem))
  t.equal(await take(at('/n5.pem')), 'taken')
})

t.test('a subscription is confirmed only at SNS', async (t) => {
  const { confirm, answer, requests } = await begin(t)
  t.equal(await confirm(aConfirmation()), 'taken')
  t.equal(await confirm(aConfirmation({ SubscribeURL: `https://${SNS_HOST}/` })), FOREIGN)
  t.equal(requests.length, 1)
  const faults: Answer[] = [(response) => response.writeHead(403).end(), (response) => response.destroy()]
  for (const fault of faults) {
    answer(fault)
    const outcome = await confirm(aConfirmation())
    t.equal(outcome, 'unavailable 20 SNS did not accept the confirmation. Try again later.')
  }
})
