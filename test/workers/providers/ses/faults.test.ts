/** The meaning of each SDK error for a message and its sender. adapter.test.ts has them from the wire. */
import { judgeFault, type SesFault } from '../../../../workers/providers/ses/faults.ts'
import t from '../../../support/tap.ts'

const fault = (name: string, status: number | undefined = 400, fields: Partial<SesFault> = {}): SesFault => ({
  ...{ name, message: 'Words.', $metadata: { httpStatusCode: status } },
  ...fields,
})
const said = (name: string, message: string) => fault(name, 400, { message })

t.test('each name has its verdict', async (t) => {
  const named: [outcome: object, names: string[]][] = [
    [{ kind: 'sender', trouble: 'slow' }, ['TooManyRequestsException', 'ThrottlingException', 'Throttling']],
    [
      { kind: 'sender', trouble: 'setup', wait_seconds: 900 },
      [
        ...['LimitExceededException', 'SendingPausedException', 'AccountSuspendedException'],
        'NotFoundException',
      ],
    ],
    [
      { kind: 'policy', blames: 'identity' },
      ['MailFromDomainNotVerifiedException', 'AccessDeniedException', 'AccessDenied', 'NotAuthorized'],
    ],
    [
      { kind: 'refused', effect: 'none' },
      ['MessageRejected', 'BadRequestException', 'ValidationException', 'ValidationError'],
    ],
    [
      { kind: 'deferred' },
      ['InternalServiceErrorException', 'NovelException', 'constructor', 'toString', ''],
    ],
  ]
  for (const [outcome, names] of named)
    for (const name of names)
      t.strictSame(judgeFault(fault(name)), { ...outcome, detail: `${name}: Words.` }, name)
})

t.test('a credentials error waits without its message', async (t) => {
  for (const name of [
    ...['CredentialsProviderError', 'UnrecognizedClientException', 'InvalidClientTokenId', 'RequestExpired'],
    ...['ExpiredTokenException', 'ExpiredToken', 'InvalidSignatureException', 'SignatureDoesNotMatch'],
    ...['MissingAuthenticationTokenException', 'IncompleteSignature', 'OptInRequired'],
    'MissingAuthenticationToken',
  ]) {
    const detail = `${name}: AWS rejected our credentials`
    t.strictSame(judgeFault(fault(name)), { kind: 'sender', detail, trouble: 'setup' }, name)
  }
})

t.test('denied access waits, under any error name', async (t) => {
  for (const status of [401, 403])
    for (const name of ['NovelException', 'constructor', '403'])
      t.strictSame(judgeFault(fault(name, status)), {
        ...{ kind: 'sender', detail: `${name}: AWS rejected our credentials`, trouble: 'setup' },
      })
  t.match(judgeFault(fault('AccessDeniedException', 403)), { kind: 'policy' }, 'a known name counts')
})

t.test('one name for two things is judged by its message', async (t) => {
  const pause = { kind: 'sender', trouble: 'setup', wait_seconds: 900 }
  t.match(judgeFault(said('TooManyRequestsException', 'Daily message quota exceeded')), pause)
  t.match(judgeFault(said('Throttling', 'daily quota')), pause)
  for (const words of ['Maximum sending rate exceeded: not the daily one', 'Dailyish'])
    t.match(judgeFault(said('Throttling', words)), { trouble: 'slow' }, words)
  t.match(judgeFault(said('BadRequestException', 'Daily x')), { kind: 'refused' }, 'of another name')
  for (const words of ['Email address is not verified.', 'NOT VERIFIED'])
    t.match(judgeFault(said('MessageRejected', words)), { kind: 'policy' }, words)
  for (const words of ['cannot verified', 'not verifiedly'])
    t.match(judgeFault(said('MessageRejected', words)), { kind: 'refused' }, words)
  t.match(judgeFault(said('BadRequestException', 'not verified')), { kind: 'refused' }, 'of another name')
})

t.test('a successful status is accepted with any response', async (t) => {
  for (const status of [200, 299])
    t.strictSame(judgeFault(fault('BadRequestException', status)), {
      ...{ kind: 'accepted', detail: 'BadRequestException: Words.' },
    })
  for (const status of [199, 300]) t.match(judgeFault(fault('x', status)), { kind: 'deferred' }, `${status}`)
})

t.test('unnamed errors: too large, not connected, a status, or unknown', async (t) => {
  t.strictSame(judgeFault(fault('413', 413)), {
    ...{ kind: 'refused', detail: 'the message is too large: 413: Words.', effect: 'none' },
  })
  const broken = (code?: string): SesFault => ({ name: 'Error', message: 'Words.', ...(code && { code }) })
  t.strictSame(judgeFault(broken('ECONNREFUSED')), {
    ...{ kind: 'sender', detail: 'Error: Words.', trouble: 'connection' },
  })
  for (const code of ['ECONNRESET', undefined])
    t.strictSame(judgeFault(broken(code)), {
      ...{ kind: 'unknown', wait_seconds: 600 },
      detail: 'no response after the message was sent: Error: Words.',
    })
  const { $metadata: _none, ...unanswered } = fault('MessageRejected')
  t.match(judgeFault(unanswered), { kind: 'refused' }, 'its name alone')
})
