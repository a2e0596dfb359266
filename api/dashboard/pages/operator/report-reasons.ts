/** Explains the reasons and names their providers, with advice for operators. Pure. */
import { CHANNEL_FACTS } from '../../../../db/channels/list.ts'
import { FORMER_REASONS, PARKED_REASONS } from '../../../../db/delivery/reports/parked-reasons.ts'
import { headed } from '../../components/cell.ts'

const NAMES = new Map([
  ...CHANNEL_FACTS.flatMap(({ provider_names }) => Object.entries(provider_names)),
  ['test', 'the simulator'],
])

/** Returns the name of a provider, or its ID if it is unknown. */
export const providerName = (provider: string): string => NAMES.get(provider) ?? provider

export const REPORTS_PATH = '/operator/reports'
export const reportPath = (id: string): string => `${REPORTS_PATH}/${id}`

type Cause = {
  /** The stored reason. */
  reason: string
  sentence: string
  advice: string
  /** True if a replay can help without other changes. */
  isReplayable: boolean
}

const CAUSES: readonly Cause[] = [
  {
    reason: PARKED_REASONS.noMessage,
    sentence: 'No message matches this report',
    advice:
      'The message was deleted or erased, or another service sends through the same account. You can drop such reports. A replay only helps after you restore the message from a backup.',
    isReplayable: false,
  },
  {
    reason: PARKED_REASONS.noReference,
    sentence: 'No valid reference to an email',
    advice:
      'Another service uses the same return path, or SECRET_KEY was replaced. You can drop such reports. A replay only helps after you restore the old key.',
    isReplayable: false,
  },
]

/** Any other reason is an error while reading it. */
const UNREADABLE: Pick<Cause, 'advice' | 'isReplayable'> = {
  advice:
    'This version can’t read the report. Replay it after an update. If it is still parked then, file a bug with the raw report.',
  isReplayable: true,
}

const findCause = (stored: string | null): Cause | undefined =>
  CAUSES.find(({ reason }) => reason === (FORMER_REASONS.get(stored) ?? stored))

export const reasonWords = (reason: string | null): string | null =>
  findCause(reason)?.sentence ?? (reason && headed(reason))

export const remedyFor = (reason: string | null): typeof UNREADABLE => findCause(reason) ?? UNREADABLE

/** Returns the stored reason of this sentence, or the text itself. */
export const storedReason = (words: string | undefined): string | undefined =>
  CAUSES.find(({ sentence }) => sentence.toLowerCase() === words?.toLowerCase())?.reason ?? words
