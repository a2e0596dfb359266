/** Reads SendGrid's events. Our arguments are among its own keys. Pure. */
import { OWN_NAME } from './header.ts'
import {
  type Finding,
  failed,
  found,
  isSet,
  type RelayPage,
  seen,
  textAt,
  unsubscribed,
} from './read-event.ts'

/** The reasons for dropped emails: its own lists, or an invalid address. Not its "Invalid SMTPAPI header". */
const LISTS: readonly (readonly [RegExp, Omit<Finding, 'words'>])[] = [
  [/^(?:bounced(?: address)?|invalid(?: (?:e-?mail )?address)?)$/i, { kind: 'bounced', effect: 'hard' }],
  [/^unsubscribed address$/i, { kind: 'bounced', effect: 'unsubscribe' }],
  [/^spam reporting address$/i, { kind: 'complained', effect: 'complaint' }],
]

/** The type of a bounce after which the receiver may accept the next email. */
const FOR_NOW = 'blocked'

function bounced(event: unknown): Finding {
  const [status, reason, type] = [
    textAt(event, ['status']),
    textAt(event, ['reason']),
    textAt(event, ['type']),
  ]
  const words = `${reason === '' || reason.includes(status) ? '' : `${status} `}${reason || status}`
  if (type === 'expired') return { kind: 'bounced', effect: 'soft', words }
  return failed(words, { reply: reason, status }, type === FOR_NOW ? 'soft' : 'hard')
}

function dropped(event: unknown): Finding {
  const reason = textAt(event, ['reason'])
  const listed = LISTS.find(([reasons]) => reasons.test(reason.trim()))?.[1]
  return { ...(listed ?? { kind: 'bounced', effect: 'none' }), words: `dropped: ${reason}` }
}

const readAgent = (event: unknown): string => textAt(event, ['useragent'])

const FINDINGS = new Map<string, (event: unknown) => Finding | null>([
  ['delivered', found('delivered', 'delivered', ['response'])],
  ['deferred', found('delayed', 'none', ['response'], ['reason'])],
  ['bounce', bounced],
  ['dropped', dropped],
  ['spamreport', found('complained', 'complaint')],
  ['unsubscribe', unsubscribed],
  ['group_unsubscribe', unsubscribed],
  ['open', (event) => seen('opened', readAgent(event), readAgent(event), isSet(event, ['sg_machine_open']))],
  ['click', (event) => seen('clicked', readAgent(event), textAt(event, ['url']))],
])

export const SENDGRID: RelayPage = {
  relay: 'sendgrid',
  find: (event) => FINDINGS.get(textAt(event, ['event']))?.(event) ?? null,
  recipient: [['email']],
  time: [['timestamp']],
  id: [['sg_event_id']],
  reference: [[OWN_NAME], ['unique_args', OWN_NAME]],
  message_id: [['smtp-id']],
}
