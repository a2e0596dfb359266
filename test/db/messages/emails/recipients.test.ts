/** Recipients of an email. DECISIONS: Email addresses, Recipients that differ only in case. */
import { bareRecipients, named, recipientIdentity } from '../../../../db/messages/emails/recipients.ts'
import { recipientsOf } from '../../../../workers/channels/render.ts'
import t from '../../../support/tap.ts'

const to = ['dup@x.test', 'DUP@X.test', 'Dup <dup@x.test>', 'Bob <bob@bücher.test>', 'bob@xn--bcher-kva.test']

t.test('two spellings of one address are one recipient, in the first spelling', (t) => {
  t.same(named({ to_emails: to, first_cc: null, first_bcc: null }).to, [
    'dup@x.test',
    'Bob <bob@bücher.test>',
  ])
  t.same(
    [...bareRecipients(to)],
    [
      ['dup@x.test', 'dup@x.test'],
      ['bob@xn--bcher-kva.test', 'bob@bücher.test'],
    ],
  )
  t.equal(recipientIdentity('"A, B" <A@x.test>'), 'a@x.test')
  t.equal(recipientIdentity('No Address'), 'no address')
  t.end()
})

t.test('each recipient is in the envelope once, by its bare address', (t) => {
  const row = { to_emails: to, pending_recipients: null } as unknown as Parameters<typeof recipientsOf>[0]
  t.same(recipientsOf(row), ['dup@x.test', 'bob@bücher.test'])
  t.same(recipientsOf({ ...row, pending_recipients: ['bob@bücher.test'] }), ['bob@bücher.test'])
  t.end()
})
