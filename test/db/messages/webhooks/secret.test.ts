/** The secrets and signatures of webhooks, checked with the reference library of Standard Webhooks. */
import { Webhook } from 'standardwebhooks'
import { makeSecret, openSecret, signedHeaders, signingKey } from '../../../../db/messages/webhooks/secret.ts'
import { createSecrets } from '../../../../db/process/secrets.ts'
import t from '../../../support/tap.ts'

const secrets = createSecrets('a secret key for tests, thirty-two characters or more')
const owner = { team_id: 'a', id: 'b' }

t.test('secrets follow Standard Webhooks and belong to one endpoint', async (t) => {
  const { shown, sealed } = makeSecret(secrets, owner)
  t.match(shown, /^whsec_[A-Za-z0-9+/]{43}=$/)
  t.equal(`whsec_${openSecret(secrets, owner, sealed).toString('base64')}`, shown)
  t.strictSame(secrets.decrypt('webhook', sealed, 'a/b'), openSecret(secrets, owner, sealed))
  for (const other of [
    { ...owner, id: 'c' },
    { ...owner, team_id: 'c' },
  ])
    t.throws(() => openSecret(secrets, other, sealed))
})

t.test('every current key signs the ID, time and body', async (t) => {
  const [one, other] = [makeSecret(secrets, owner), makeSecret(secrets, owner)]
  const keys = [one, other].map(({ sealed }) => signingKey(secrets, owner, sealed))
  const at = new Date()
  const body = '{"type":"email.sent"}'
  const headers = signedHeaders(keys, { event_id: 'msg_1', body }, at)
  t.match(headers, { 'webhook-id': 'msg_1', 'webhook-timestamp': String(Math.floor(at.getTime() / 1_000)) })
  for (const { shown } of [one, other]) {
    t.strictSame(new Webhook(shown).verify(body, headers), JSON.parse(body))
    t.throws(() => new Webhook(shown).verify(`${body} `, headers))
    t.throws(() => new Webhook(shown).verify(body, { ...headers, 'webhook-id': 'msg_2' }))
  }
})
