/** The header that a hosted relay returns: its value, once, above the signed part. */
import { generateKeyPairSync } from 'node:crypto'
import { RELAYS, type Relay } from '../../../../db/validation/relays.ts'
import { outgoingEmail } from '../../../support/outgoing-email.ts'
import { provide } from '../../../support/smtp-provider.ts'
import { startSmtpSink } from '../../../support/smtp-sink.ts'
import t, { type Test } from '../../../support/tap.ts'

const REFERENCE = `b-${'7'.repeat(62)}`
const LINES: Record<Relay, string> = {
  mailgun: `X-Mailgun-Variables: {"heliograph":"${REFERENCE}"}`,
  sendgrid: `X-SMTPAPI: {"unique_args":{"heliograph":"${REFERENCE}"}}`,
  postmark: `X-PM-Metadata-heliograph: ${REFERENCE}`,
  brevo: `X-Mailin-custom: ${REFERENCE}`,
}
const NAMES = Object.values(LINES).map((line) => line.slice(0, line.indexOf(':')).toLowerCase())

/** Returns the header lines of a message as it arrived. */
async function headerOf(t: Test, hosted: Relay | null, headers: Record<string, string>) {
  const sink = await startSmtpSink(t)
  const provider = provide(t, { url: sink.url, ...(hosted ? { hosted } : {}) })
  const private_key = generateKeyPairSync('rsa', { modulusLength: 1024 }).privateKey
  const dkim = { domain: 'demo.test', selector: 's', private_key }
  await provider.send(outgoingEmail({ headers, reference: REFERENCE, dkim }))
  const raw = sink.last().raw.toString()
  return raw.slice(0, raw.indexOf('\r\n\r\n')).split(/\r\n(?![ \t])/)
}

t.test('a hosted relay gets the reference header once', async (t) => {
  for (const relay of RELAYS) {
    const [name = ''] = LINES[relay].split(':')
    const lines = await headerOf(t, relay, { [name.toUpperCase()]: 'evil', 'X-Kept': 'yes' })
    const own = lines.filter((line) => NAMES.some((each) => line.toLowerCase().startsWith(each)))
    t.strictSame(own, [LINES[relay]], relay)
    t.ok(lines.includes('X-Kept: yes'))
    const signed = lines.find((line) => line.startsWith('DKIM-Signature')) ?? ''
    t.ok(signed !== '' && !signed.toLowerCase().includes(name.toLowerCase()), 'relays take it out again')
  }
})

t.test('without a hosted relay, sends only the client’s header', async (t) => {
  const lines = await headerOf(t, null, { 'X-SMTPAPI': '{}' })
  const own = lines.filter((line) => NAMES.some((each) => line.toLowerCase().startsWith(each)))
  t.strictSame(own, ['X-SMTPAPI: {}'])
})
