/** SendGrid's events. Arguments of ours stand among its own keys. Pure. */
import { effectOfHardBounce } from '../mail/effects.ts'
import { OWN_NAME } from './header.ts'
import { type Finding, found, isSet, type RelayPage, statusIn, textAt } from './read-event.ts'

/** Why it dropped a message: the address bounced before, or is none. Not its "Invalid SMTPAPI header". */
const DEAD_ADDRESS = /^(?:bounced(?: address)?|invalid(?: (?:e-?mail )?address)?)$/i

/** `blocked` is the word of a receiver that may take the next one. */
function bounced(event: unknown): Finding {
  const [status, reason] = [textAt(event, ['status']), textAt(event, ['reason'])]
  const words = `${reason === '' || reason.includes(status) ? '' : `${status} `}${reason || status}`
  if (textAt(event, ['type']) === 'blocked') return { kind: 'bounced', effect: 'soft', words }
  return { kind: 'bounced', effect: effectOfHardBounce(statusIn(status, reason)), words }
}

function dropped(event: unknown): Finding {
  const reason = textAt(event, ['reason'])
  const effect = DEAD_ADDRESS.test(reason.trim()) ? 'hard' : 'none'
  return { kind: 'bounced', effect, words: `dropped: ${reason}` }
}

const opened = (event: unknown): Finding | null =>
  isSet(event, ['sg_machine_open']) ? null : found('opened', 'none', ['useragent'])(event)

const FINDINGS = new Map<string, (event: unknown) => Finding | null>([
  ['delivered', found('delivered', 'delivered', ['response'])],
  ['deferred', found('delayed', 'none', ['response'], ['reason'])],
  ['bounce', bounced],
  ['dropped', dropped],
  ['spamreport', found('complained', 'complaint')],
  ['open', opened],
  ['click', found('clicked', 'none', ['url'])],
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
