/** Return addresses in raw email, and references. DECISIONS: Delivery reports. */
import {
  carriesReference,
  readReference,
  returnPath,
  signedReference,
} from '../../../../db/messages/emails/return-path.ts'
import { createSecrets } from '../../../../db/process/secrets.ts'
import t from '../../../support/tap.ts'

const secrets = createSecrets('a secret key for tests, thirty-two characters or more')
const ref = { team_id: '0190a1b2-0000-7000-8000-00000000000a', id: '0190a1b2-0000-7fff-bfff-ffffffffffff' }
const reference = signedReference(secrets, ref)
const address = returnPath(secrets, ref, 'bounces.example.com') ?? ''

t.test('rejects a reference with leading or trailing characters', async (t) => {
  t.strictSame(readReference(secrets, reference), ref)
  for (const text of [` ${reference}`, `${reference}@`, `${reference}@x.test`, reference.slice(0, -1), ''])
    t.equal(readReference(secrets, text), null, text)
})

t.test('finds an address in raw mail across quoted-printable breaks', async (t) => {
  const [start, end] = [address.slice(0, 20), address.slice(20)]
  for (const text of [
    address,
    `${start}=\r\n${end}`,
    `${start}=\n${end}`,
    address.replace('@', '=40'),
    `X-Heliograph-Ref: ${reference}`,
    `\xe9 ${address}`,
  ])
    t.ok(carriesReference(secrets, Buffer.from(`To: <x@x.test>\r\n\r\n${text}\r\n`, 'latin1')), text)
  for (const text of [
    '',
    `${start} ${end}`,
    `${start}\n${end}`,
    `${reference}x`,
    address.replace(/.@/, (last) => (last === '0@' ? '1@' : '0@')),
  ])
    t.notOk(carriesReference(secrets, Buffer.from(text)), text)
})
