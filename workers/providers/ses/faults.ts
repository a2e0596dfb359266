/**
 * Judges why SES did not take a message: SDK errors → outcomes.
 * Promises: pure; by the error's name, and by its words where SES gives one name to two things; `detail` is
 * printable, short and free of secrets. DECISIONS: Sender failures.
 */
import { isUnsent } from '../../../db/process/http-client.ts'
import { storableWords } from '../../../db/validation/words.ts'
import { NOT_CONNECTED } from '../connection.ts'
import type { Outcome } from '../provider.ts'

/** What the SDK throws, as far as we look at it. */
export type SesFault = Error & { code?: string; $metadata?: { httpStatusCode?: number | undefined } }

type Verdict =
  /** Too fast: everything slows down. */
  | 'slow'
  /** Nothing can be sent for now: everything waits. */
  | 'pause'
  /** As `pause`, and the words may hold credentials. */
  | 'login'
  /** An identity is not verified, or may not be used: a policy may allow some senders and not others. */
  | 'identity'
  | 'refuse'

/** By the SDK's names and, for what fails before it reaches SES, those of AWS's front door. */
const VERDICTS: Record<string, Verdict> = {
  TooManyRequestsException: 'slow',
  ThrottlingException: 'slow',
  Throttling: 'slow',
  LimitExceededException: 'pause',
  SendingPausedException: 'pause',
  AccountSuspendedException: 'pause',
  // The configuration set of SES_CONFIGURATION_SET, which every message names.
  NotFoundException: 'pause',
  CredentialsProviderError: 'login',
  UnrecognizedClientException: 'login',
  InvalidClientTokenId: 'login',
  ExpiredTokenException: 'login',
  ExpiredToken: 'login',
  InvalidSignatureException: 'login',
  SignatureDoesNotMatch: 'login',
  RequestExpired: 'login',
  MissingAuthenticationTokenException: 'login',
  MissingAuthenticationToken: 'login',
  IncompleteSignature: 'login',
  OptInRequired: 'login',
  MailFromDomainNotVerifiedException: 'identity',
  AccessDeniedException: 'identity',
  AccessDenied: 'identity',
  NotAuthorized: 'identity',
  MessageRejected: 'refuse',
  BadRequestException: 'refuse',
  ValidationException: 'refuse',
  ValidationError: 'refuse',
}
/** What AWS's front door, or a gateway on the way, says of who is not let in, under whatever name. */
const NOT_LET_IN: readonly unknown[] = [401, 403]

/** Seconds. SES's day is a moving window: a used-up quota comes back bit by bit. */
const QUOTA_PAUSE_S = 900
/** Said of senders, and in the sandbox of recipients: either is for the operator to verify. */
const NOT_VERIFIED = /\bnot verified\b/i
/** What AWS's front door says of a request beyond the size that it takes: SES itself never saw it. */
const TOO_LARGE = 413
/** For so long its Send or Delivery event may still show that SES has taken the message. */
const UNKNOWN_WAIT_S = 600

/** The outcome for every recipient of a failed attempt. */
export function judgeFault(fault: SesFault): Outcome {
  const status = fault.$metadata?.httpStatusCode
  const words = storableWords(`${fault.name}: ${fault.message}`)
  // Taken, whatever the rest of the answer looked like: sending it again would be a duplicate.
  if (status !== undefined && status >= 200 && status < 300) return { kind: 'accepted', detail: words }
  const verdict = sesVerdict(fault)
  if (verdict !== undefined) return sesOutcome(verdict, fault, words)
  if (status === TOO_LARGE) {
    return { kind: 'refused', detail: storableWords(`the message is too large: ${words}`), effect: 'none' }
  }
  if (isUnsent(fault) || NOT_CONNECTED.has(fault.code ?? '')) {
    return { kind: 'sender', detail: words, trouble: 'connection' }
  }
  if (status !== undefined) return { kind: 'deferred', detail: words }
  const detail = storableWords(`no answer after the message was handed over: ${words}`)
  return { kind: 'unknown', detail, wait_seconds: UNKNOWN_WAIT_S }
}

function sesVerdict({ name, message, $metadata }: SesFault): Verdict | undefined {
  const unnamed = NOT_LET_IN.includes($metadata?.httpStatusCode) ? 'login' : undefined
  const verdict = Object.hasOwn(VERDICTS, name) ? VERDICTS[name] : unnamed
  // "Daily message quota exceeded" and "Maximum sending rate exceeded" come under one name.
  if (verdict === 'slow' && /^daily\b/i.test(message)) return 'pause'
  if (name === 'MessageRejected' && NOT_VERIFIED.test(message)) return 'identity'
  return verdict
}

function sesOutcome(verdict: Verdict, { name }: SesFault, detail: string): Outcome {
  switch (verdict) {
    case 'slow':
      return { kind: 'sender', detail, trouble: 'slow' }
    case 'pause':
      return { kind: 'sender', detail, trouble: 'setup', wait_seconds: QUOTA_PAUSE_S }
    case 'login': {
      const detail = storableWords(`${name}: AWS does not take our credentials`)
      return { kind: 'sender', detail, trouble: 'setup' }
    }
    case 'identity':
      return { kind: 'policy', detail, blames: 'identity' }
    case 'refuse':
      return { kind: 'refused', detail, effect: 'none' }
  }
}
