/** Recipients of an email. DECISIONS: Email addresses, Duplicate recipients. */
import { bareRecipients, everyone, named, present } from '../../../../db/messages/emails/recipients.ts'
import { ERASED, recipientIdentity } from '../../../../db/validation/addressees.ts'
import { recipientsOf } from '../../../../workers/channels/render.ts'
import t from '../../../support/tap.ts'

const to = ['dup@x.test', 'DUP@X.test', 'Dup <dup@x.test>', 'Bob <bob@bücher.test>', 'bob@xn--bcher-kva.test']

t.test('two spellings are one recipient, in the first spelling', (t) => {
  t.same(named({ to_emails: to, first_cc: null, first_bcc: null }).to, [
    'dup@x.test',
    'Bob <bob@bücher.test>',
  ])
  const bare = [...bareRecipients(to)]
  t.same(bare, [
    ['dup@x.test', 'dup@x.test'],
    ['bob@xn--bcher-kva.test', 'bob@bücher.test'],
  ])
  t.equal(recipientIdentity('"A, B" <A@x.test>'), 'a@x.test')
  t.equal(recipientIdentity('No Address'), 'no address')
  t.strictSame([...bareRecipients(['No Address'])], [['no address', 'No Address']])
  t.end()
})

t.test('the envelope has each bare address once', (t) => {
  const row = { to_emails: to, pending_recipients: null } as unknown as Parameters<typeof recipientsOf>[0]
  t.same(recipientsOf(row), ['dup@x.test', 'bob@bücher.test'])
  t.same(recipientsOf({ ...row, pending_recipients: ['bob@bücher.test'] }), ['bob@bücher.test'])
  t.end()
})

t.test('headers name each recipient once, and no erased ones', (t) => {
  const all = ['Ann <ann@x.test>', ERASED, 'bob@x.test', 'ANN@x.test', ERASED, 'carl@x.test']
  const row = { to_emails: all, first_cc: 2, first_bcc: 5 }
  t.strictSame(named(row), { to: ['Ann <ann@x.test>'], cc: ['bob@x.test'] })
  t.end()
})

t.test('leaves out erased recipients unless all are erased', (t) => {
  t.strictSame(present(['a@x.test', ERASED]), ['a@x.test'])
  t.strictSame(present([ERASED, ERASED]), [ERASED, ERASED])
  t.equal(ERASED, 'erased@erased.invalid')
  t.end()
})

t.test('everyone is to, cc, then bcc', (t) => {
  t.strictSame(everyone({ to_emails: ['a'], cc_emails: ['b'], bcc_emails: ['c'] }), ['a', 'b', 'c'])
  t.strictSame(everyone({ to_emails: ['a'] }), ['a'])
  t.end()
})
