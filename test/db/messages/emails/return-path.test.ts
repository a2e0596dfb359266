/** Return addresses in raw email, and references. DECISIONS: Delivery reports. */
import fc from 'fast-check'
import {
  carriesReference,
  findReturnPath,
  readReference,
  returnPath,
  signedReference,
} from '../../../../db/messages/emails/return-path.ts'
import { createSecrets } from '../../../../db/process/secrets.ts'
import { parseAddress } from '../../../../db/validation/address.ts'
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

t.test('a return address is valid and finds its row', async (t) => {
  fc.assert(
    fc.property(fc.uuid(), fc.uuid(), (team_id, id) => {
      const made = returnPath(secrets, { team_id, id }, 'example.com') ?? ''
      const [local = ''] = made.split('@')
      const found = findReturnPath(secrets, `To: <${made.toUpperCase()}>`)
      return (
        local.length <= 64 &&
        /^b-[0-9a-z]+$/.test(local) &&
        parseAddress(made) !== null &&
        found?.team_id === team_id &&
        found.id === id
      )
    }),
  )
  const all = 'ffffffff-ffff-ffff-ffff-ffffffffffff'
  const none = '00000000-0000-0000-0000-000000000000'
  for (const [team_id, id] of [
    [all, all],
    [none, none],
    [none, all],
  ] as const) {
    t.same(findReturnPath(secrets, returnPath(secrets, { team_id, id }, 'e.co') ?? ''), { team_id, id })
  }
  t.equal(returnPath(secrets, ref, `${'a.'.repeat(100)}example.com`), null, 'too long for a domain of 211')
})

t.test('ignores return addresses that are forged or of another key', async (t) => {
  const other = createSecrets('another secret key for tests, thirty-two characters')
  t.equal(findReturnPath(other, address), null)
  for (let index = 2; index < 64; index++) {
    const digit = address[index] === '0' ? '1' : '0'
    const changed = address.slice(0, index) + digit + address.slice(index + 1)
    t.equal(findReturnPath(secrets, changed), null, `digit ${index}`)
  }
  t.equal(findReturnPath(secrets, `x${address}`), null)
  t.equal(findReturnPath(secrets, `b-${'z'.repeat(62)}@example.com`), null, 'beyond the bits')
  t.same(findReturnPath(secrets, `b-${'0'.repeat(62)}@x, ${address}`), ref, 'the first that is ours')
})
