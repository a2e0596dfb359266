/** Reports of hosted relays as they arrive: each sample, forged references, and hostile events. */
import { signedReference } from '../../../../db/messages/emails/return-path.ts'
import { createSecrets } from '../../../../db/process/secrets.ts'
import { createReaders } from '../../../../workers/reports/readers.ts'
import { SECRET_KEY } from '../../../support/environment.ts'
import { eventAbout, RELAYS, type Relay, samplesOf } from '../../../support/relays.ts'
import t from '../../../support/tap.ts'

const secrets = createSecrets(SECRET_KEY)
const readers = createReaders({ secrets })
const REF = { team_id: '0190a1b2-0000-7000-8000-00000000000a', id: '0190a1b2-0000-7000-8000-00000000000b' }
const reference = signedReference(secrets, REF)
const at = new Date('2026-03-01T10:00:00.000Z')
const about = { recipient: 'Ana@example.org', reference, at }
const received_at = new Date('2026-03-01T11:00:00Z')

const readRaw = (relay: Relay, text: string) => readers[relay]({ body: Buffer.from(text), received_at })
const read = (relay: Relay, event: unknown) => readRaw(relay, JSON.stringify(event))

for (const relay of RELAYS)
  t.test(`each sample of ${relay} has its meaning for the signed email`, async (t) => {
    for (const { is, event } of samplesOf(relay)) {
      const events = await read(relay, eventAbout(relay, event, about))
      if (is === 'nothing') {
        t.strictSame(events, [], JSON.stringify(event))
        continue
      }
      const [kind, effect] = is.split(' ')
      t.equal(events.length, 1, JSON.stringify(event))
      t.match(
        events[0],
        { channel: 'email', ref: REF, kind, effect, recipient: 'Ana@example.org' },
        JSON.stringify(event),
      )
      t.match(events[0], { detail: new RegExp(`^${relay}: .`) })
      const [found] = events
      t.ok(found && Math.abs(found.occurred_at.getTime() - at.getTime()) < 1_000, 'its own time')
      t.strictSame(await read(relay, eventAbout(relay, event, about)), events, 'a repeat gives the same')
    }
  })

t.test('someone else’s email gives nothing, even with an unsigned reference', async (t) => {
  const forged = `${reference.slice(0, -1)}${reference.endsWith('0') ? '1' : '0'}`
  for (const relay of RELAYS)
    for (const { event } of samplesOf(relay).slice(0, 1))
      for (const given of [forged, '', `${reference}x`, REF.id])
        t.strictSame(await read(relay, eventAbout(relay, event, { ...about, reference: given })), [])
})

t.test('a broken or hostile event never affects another email', async (t) => {
  const deep = '['.repeat(100_000) + ']'.repeat(100_000)
  for (const text of ['', 'null', '1', '"x"', '[{}]', '{}', '{"event":{}}', '{"__proto__":{"event":"spam"}}'])
    t.strictSame(await readRaw('brevo', text).catch(() => []), [], text)
  t.strictSame(await readRaw('brevo', `{"event":"spam","x":${deep}}`).catch(() => []), [])
  const odd = [
    'constructor',
    '__proto__',
    'toString',
    'hasOwnProperty',
    '',
    1,
    null,
    true,
    [],
    {},
    ['delivered'],
  ]
  for (const relay of RELAYS)
    for (const { event, is } of samplesOf(relay)) {
      const good = eventAbout(relay, event, about)
      for (const key of Object.keys(good))
        for (const value of odd) {
          const found = await read(relay, { ...good, [key]: value }).catch((error: Error) => error.message)
          if (typeof found === 'string') t.match(found, /^the (event has no|recipient)/)
          else if (is === 'nothing' && found.length === 0) continue
          else
            for (const { channel, ...rest } of found)
              t.match({ channel, ...rest }, { channel: 'email', ref: REF })
        }
    }
})
