/** Explains the reasons and names the providers of parked reports, with advice for operators. Pure. */
import type { PROVIDERS } from '../../../../db/delivery/reports/reports.sql.ts'
import { headed } from '../../components/cell.ts'

/** Names of providers by their ID. */
const PROVIDER_NAMES: Readonly<Record<(typeof PROVIDERS)[number], string>> = {
  smtp: 'SMTP relay',
  ses: 'Amazon SES',
  brevo: 'Brevo',
  mailgun: 'Mailgun',
  postmark: 'Postmark',
  sendgrid: 'SendGrid',
  whatsapp: 'WhatsApp',
  'whatsapp-number': 'WhatsApp number',
  test: 'Test',
}

/** Returns the name of a provider, or its ID if it is unknown. */
export const providerName = (provider: string): string =>
  Object.entries(PROVIDER_NAMES).find(([id]) => id === provider)?.[1] ?? provider

type Cause = {
  /** A part of the stored reason. */
  part: string
  sentence: string
  /** The next step, and the advice in sentences. */
  next: string
  advice: string
  /** True if a replay can help without other changes. */
  isReplayable: boolean
}

const CAUSES: readonly Cause[] = [
  {
    part: 'no such message',
    sentence: 'No message matches this report',
    next: 'Drop them',
    advice:
      'The message was deleted or erased, or another service sends through the same account. A replay only helps after you restore the message from a backup.',
    isReplayable: false,
  },
  {
    part: 'no signed reference',
    sentence: 'It isn’t about an email of this service',
    next: 'Drop them',
    advice:
      'Another service uses the same return path, or SECRET_KEY was replaced. A replay only helps after you restore the old key.',
    isReplayable: false,
  },
]

/** Any other reason is an error while reading it. */
const UNREADABLE: Pick<Cause, 'next' | 'advice' | 'isReplayable'> = {
  next: 'Replay after an update',
  advice:
    'This version can’t read the report. Replay it after an update. If it is still parked then, report the problem with the raw report.',
  isReplayable: true,
}

const findCause = (reason: string | null): Cause | undefined =>
  CAUSES.find(({ part }) => reason?.includes(part))

/** Returns a plain sentence for a stored reason. */
export const reasonWords = (reason: string | null): string | null =>
  findCause(reason)?.sentence ?? (reason && headed(reason))

/** Returns the advice for a reason. */
export const remedyFor = (reason: string | null): typeof UNREADABLE => findCause(reason) ?? UNREADABLE

/** Returns the part of the stored reason with this sentence, or the text itself. */
export const storedReason = (words: string | undefined): string | undefined =>
  CAUSES.find(({ sentence }) => sentence.toLowerCase() === words?.toLowerCase())?.part ?? words
