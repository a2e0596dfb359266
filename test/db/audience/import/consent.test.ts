/** Consent columns in the exports of other services. */
import { consentIn } from '../../../../db/audience/import/consent.ts'
import { mappingFor } from '../../../../db/audience/import/mapping.ts'
import t from '../../../support/tap.ts'

const saysNo = (name: string, value: string): boolean => consentIn(name, value) === 'no'

t.test('recognizes opt-outs in exports of six services', async (t) => {
  const exports = [
    ['listmonk', 'uuid,email,name,attributes,status,created_at', 'status', 'blocklisted', 'enabled'],
    ['Mailchimp', 'Email Address,First Name,Status', 'Status', 'cleaned', 'subscribed'],
    ['Mailchimp', 'Email Address,First Name,UNSUB_TIME', 'UNSUB_TIME', '2026-01-02 03:04:05', ''],
    ['Mailchimp', 'Email Address,First Name,CLEAN_TIME', 'CLEAN_TIME', '2026-01-02 03:04:05', ''],
    ['Brevo', 'CONTACT ID,EMAIL,FIRSTNAME,OPT_IN', 'OPT_IN', 'No', 'Yes'],
    ['Brevo', 'CONTACT ID,EMAIL,DOUBLE_OPT-IN', 'DOUBLE_OPT-IN', '2', '1'],
    ['Brevo', 'EMAIL,EMAIL_BLACKLISTED', 'EMAIL_BLACKLISTED', 'true', 'false'],
    ['Keila', 'Email,First name,Last name,Status', 'Status', 'unreachable', 'active'],
    ['Plunk', 'email,subscribed', 'subscribed', 'false', 'true'],
    ['SendGrid', 'email,unsubscribed_at', 'unsubscribed_at', '2026-01-02', ''],
    ['SendGrid', 'status,reason,email,created', 'status', '5.1.1', 'active'],
  ] as const
  for (const [service, header, name, no, yes] of exports) {
    const names = header.split(',')
    const { columns, no: after } = mappingFor(names, 'contacts')
    t.strictSame(columns[names.indexOf(name)], { to: 'consent' }, `${service} ${name}`)
    t.equal(after, 'unsubscribed')
    t.ok(saysNo(name, no), `${service} ${name} ${no}`)
    t.equal(consentIn(name, yes), 'yes', `${service} ${name} ${yes}`)
  }
})

t.test('treats ambiguous values as no consent', async (t) => {
  for (const value of ['', 'no', 'N', '0', 'off', 'FALSE', 'unsubscribed'])
    t.ok(saysNo('opt_in', value), value)
  for (const value of ['yes', '1', 'true', 'by mail'])
    t.ok(saysNo('blocklisted', value) && saysNo('unsubscribed', value), value)
  t.equal(consentIn('blocklisted', ''), 'yes')
  t.equal(consentIn('status', 'gold'), null)
  t.equal(consentIn('subscribed', 'since 2026-01-02'), null)
  for (const value of ['x5.1.1', 'code 5.1.1']) t.equal(consentIn('status', value), null, value)
  t.notOk('no' in mappingFor(['email', 'plan'], 'contacts'))
})

t.test('a time means consent, and a failure code means none', async (t) => {
  for (const value of ['2026-01-02', '1/2/26', '12.11.2026 10:00', '5.10.2026', ' yes ', '31/12/2026'])
    t.equal(consentIn('opt_in', value), 'yes', value)
  for (const value of ['5.1.1', '4.10.1', '5.1.10', '5.1.1 user unknown', '5.7.708', '5.715.1'])
    t.ok(saysNo('status', value), value)
})
