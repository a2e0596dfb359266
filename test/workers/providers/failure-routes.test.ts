/**
 * A failure has the same effect on every route: in a response, in a notification, from SES, from each relay.
 */
import type { NodemailerError } from 'nodemailer'
import type { ReportedEvent } from '../../../db/messages/apply-reports.ts'
import { signedReference } from '../../../db/messages/emails/return-path.ts'
import { classifyFailure } from '../../../db/validation/failures.ts'
import { createSesReportReader } from '../../../workers/providers/ses/reports.ts'
import { outcomesOfFailure } from '../../../workers/providers/smtp/replies.ts'
import { createReaders } from '../../../workers/reports/readers.ts'
import { deliveryStatus } from '../../sandbox/reports.ts'
import { at, mail_from, raw, readBytes, received_at, ref, secrets } from '../../support/mail-reports.ts'
import { eventAbout, RELAYS, type Relay } from '../../support/relays.ts'
import { bounce, sesEvent, sesReport } from '../../support/ses-events.ts'
import t from '../../support/tap.ts'

const TO = 'ana@example.org'

/** A reply for each row of the table in deliverability.md. */
const LINES: readonly (readonly [about: string, effect: string, reply: string])[] = [
  ['address', 'hard', '550 5.1.1 x'],
  ['address', 'hard', '550 5.1.10 x'],
  ['address', 'hard', '550 5.2.1 The mailbox is disabled'],
  ['address', 'hard', '550 No such user'],
  ['address', 'hard', '550 5.4.1 Recipient address rejected: Access denied'],
  ['address', 'hard', '550 5.7.1 NXDOMAIN'],
  ['address', 'hard', '550 5.5.0 Requested action not taken: mailbox unavailable (S2017062302)'],
  ['mailbox_full', 'soft', '552 5.2.2 x'],
  ['mailbox_full', 'soft', '550 The user is over quota'],
  ['policy', 'none', '550 5.7.1 x'],
  ['policy', 'none', '554 Client host [192.0.2.1] blocked using a list'],
  ['policy', 'none', '550 rejected because of DMARC'],
  ['rate', 'none', '550 5.2.1 The user is receiving mail at a rate that prevents more'],
  ['rate', 'none', '554 5.2.121 x'],
  ['message', 'none', '552 5.3.4 x'],
  ['message', 'none', '552 The message exceeds the maximum size'],
  ['sender', 'none', '550 5.1.8 x'],
  ['sender', 'none', '554 Message rejected: Email address is not verified'],
  ['route', 'soft', '550 5.4.4 x'],
  ['expired', 'soft', '550 5.4.316 Message expired'],
  ['unknown', 'soft', '550 no'],
  ['unknown', 'soft', '550 5.0.0 no'],
]

const effectsOf = (events: readonly ReportedEvent[]) =>
  events.flatMap((event) => (event.channel === 'email' ? [`${event.kind} ${event.effect}`] : []))

/** Returns the effect of a reply to RCPT. The engine judges policies, which never affect the contact. */
function inDialogue(response: string): string {
  const rejected = { recipient: TO, response } as NodemailerError
  const attempt = { to: [TO], isBegun: () => true, handed_over: false, refusals: () => [rejected] }
  const error = Object.assign(new Error('no'), { code: 'EENVELOPE', command: 'RCPT TO', response })
  const outcome = outcomesOfFailure(attempt, error as NodemailerError, String).get(TO)
  return outcome?.kind === 'refused' ? `bounced ${outcome.effect}` : 'bounced none'
}

const reference = signedReference(secrets, ref)
const settings = { SMTP_URL: 'smtp://relay.example:2525' }
const readers = createReaders({ secrets, settings })

const EVENTS: Record<Relay, (reply: string) => Record<string, unknown>> = {
  mailgun: (reply) => ({
    ...{ event: 'failed', severity: 'permanent', reason: 'generic' },
    'delivery-status': { code: Number(reply.slice(0, 3)), message: reply.slice(4) },
  }),
  sendgrid: (reply) => ({ event: 'bounce', type: 'bounce', status: '', reason: reply }),
  postmark: (reply) => ({ RecordType: 'Bounce', Type: 'HardBounce', Details: `smtp;${reply}`, Email: TO }),
  brevo: (reply) => ({ event: 'hard_bounce', reason: reply }),
}

for (const [about, effect, reply] of LINES)
  t.test(`${reply} is about ${about} by every route`, async (t) => {
    const is = [`bounced ${effect}`]
    t.equal(classifyFailure({ reply }).about, about)
    t.equal(inDialogue(reply), is[0], 'in the dialogue')
    const recipient = { recipient: TO, action: 'failed', status: '5.0.0', diagnostic: reply } as const
    t.strictSame(effectsOf(await readBytes(deliveryStatus({ mail_from, raw, at }, [recipient]))), is, 'DSN')
    const listed = { emailAddress: TO, action: 'failed', status: '5.0.0', diagnosticCode: `smtp; ${reply}` }
    const ses = await createSesReportReader('ses:eu-west-1')(
      sesReport(sesEvent('Bounce', bounce('Permanent', 'General', [listed]))),
    )
    t.strictSame(effectsOf(ses), is, 'SES')
    t.equal(
      ses.some(({ channel }) => channel === 'sender'),
      about === 'sender',
    )
    for (const relay of RELAYS) {
      const event = eventAbout(relay, EVENTS[relay](reply), { recipient: TO, reference, at })
      const events = await readers[relay]({ body: Buffer.from(JSON.stringify(event)), received_at })
      t.strictSame(effectsOf(events), is, relay)
      const paused = events.flatMap((each) => (each.channel === 'sender' ? [each.sender] : []))
      t.strictSame(paused, about === 'sender' ? ['smtp:relay.example:2525'] : [], `${relay}: the sender`)
    }
  })
