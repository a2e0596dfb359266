/**
 * Judges why SES didn't accept a message: SDK errors → outcomes. Pure. It uses the error's name, and the message if
 * SES uses one name for two things. `detail` is printable, short and without secrets. DECISIONS: Sender failures.
 */
import { isUnsent } from '../../../db/process/http-client.ts'
import { storableWords } from '../../../db/validation/words.ts'
import { NOT_CONNECTED } from '../connection.ts'
import type { Outcome } from '../provider.ts'

/** The parts of the SDK's errors that are used. */
export type SesFault = Error & { code?: string; $metadata?: { httpStatusCode?: number | undefined } }

type Verdict =
  /** Too fast, so everything slows down. */
  | 'slow'
  /** Nothing can be sent for now, so everything waits. */
  | 'pause'
  /** Like `pause`, but the message may contain credentials. */
  | 'login'
  /** An identity is unverified or not allowed. A policy may allow only some senders. */
  | 'identity'
  | 'refuse'

/** By the SDK's names and, for failures before SES, those of AWS's front end. */
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
/** Statuses of AWS's front end or a gateway for denied access, under any error name. */
const NOT_LET_IN: readonly unknown[] = [401, 403]

/** Seconds. SES's day is a sliding window, so a used-up quota returns gradually. */
const QUOTA_PAUSE_S = 900
/** About senders, and in the sandbox about recipients. The operator must verify either. */
const NOT_VERIFIED = /\bnot verified\b/i
/** AWS's front end rejects requests over its size limit before they reach SES. */
const TOO_LARGE = 413
/** How long its Send or Delivery event may still show that SES accepted the message. */
const UNKNOWN_WAIT_S = 600

export function judgeFault(fault: SesFault): Outcome {
  const status = fault.$metadata?.httpStatusCode
  const words = storableWords(`${fault.name}: ${fault.message}`)
  // Accepted, whatever the rest of the response is. A retry would be a duplicate.
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
  const detail = storableWords(`no response after the message was sent: ${words}`)
  return { kind: 'unknown', detail, wait_seconds: UNKNOWN_WAIT_S }
}

function sesVerdict({ name, message, $metadata }: SesFault): Verdict | undefined {
  const unnamed = NOT_LET_IN.includes($metadata?.httpStatusCode) ? 'login' : undefined
  const verdict = Object.hasOwn(VERDICTS, name) ? VERDICTS[name] : unnamed
  // "Daily message quota exceeded" and "Maximum sending rate exceeded" share one name.
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
      const detail = storableWords(`${name}: AWS rejected our credentials`)
      return { kind: 'sender', detail, trouble: 'setup' }
    }
    case 'identity':
      return { kind: 'policy', detail, blames: 'identity' }
    case 'refuse':
      return { kind: 'refused', detail, effect: 'none' }
  }
}
