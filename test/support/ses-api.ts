/**
 * Simulates the Amazon SES API v2: SendEmail and GetAccount over its real REST protocol, on HTTP. It rejects
 * malformed requests like SES (unsigned, no recipients, invalid tag letters, a line over 1,000 octets).
 * Otherwise it accepts, or follows the test's script. It is independent of our adapter. The shapes are from
 * aws-sdk's model of sesv2-2019-09-27, and were checked against npm aws-ses-v2-local 2.10.2, which has no
 * errors.
 */
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import type { Teardown } from './smtp-sink.ts'

/** A received SendEmail: its body as sent by the SDK, the decoded message, and its time. */
export type SesCall = {
  at: number
  from: string
  to: string[]
  tags: Record<string, string>
  configuration_set: string | null
  raw: Buffer
}

/** An error in SES's form, no response (`hang`), a cut connection, an unreadable response, or this JSON. */
export type SesFault =
  | { status: number; type: string; message?: string }
  | { json: unknown }
  | 'hang'
  | 'drop'
  | 'no id'
  | 'broken json'

export type SesApi = {
  url: string
  /** Every well-formed SendEmail, rejected ones included. */
  calls: SesCall[]
  /** Returns how often the account was read. */
  asked(): number
}

export type SesScript = {
  /** Returns the response to the nth SendEmail (from 1). undefined accepts it. */
  onSend?: (call: SesCall, nth: number) => SesFault | undefined | Promise<SesFault | undefined>
  /** Returns MaxSendRate, or a fault. */
  account?: () => number | SesFault | Promise<number | SesFault>
}

/** Starts on a free port of 127.0.0.1, and closes with the test. Sets credentials for the SDK. */
export async function startSesApi(t: Teardown, script: SesScript = {}): Promise<SesApi> {
  Object.assign(process.env, { AWS_ACCESS_KEY_ID: 'AKIATEST', AWS_SECRET_ACCESS_KEY: 'test' })
  const calls: SesCall[] = []
  let asked = 0
  const server = createServer(async (request, response) => {
    const body = await text(request)
    if (!/^AWS4-HMAC-SHA256 Credential=AKIATEST\//.test(request.headers.authorization ?? ''))
      return refuse(response, { status: 403, type: 'MissingAuthenticationTokenException' })
    if (request.method === 'GET' && request.url === '/v2/email/account') {
      asked++
      return answerAccount(request, response, (await script.account?.()) ?? 1_000)
    }
    if (request.method !== 'POST' || request.url !== '/v2/email/outbound-emails')
      return refuse(response, { status: 404, type: 'UnknownOperationException' })
    const call = readCall(body)
    if (typeof call === 'string')
      return refuse(response, { status: 400, type: 'BadRequestException', message: call })
    const nth = calls.push(call)
    act(request, response, await script.onSend?.(call, nth), `0100-${nth}-000000`)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.teardown(async () => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, calls, asked: () => asked }
}

function readCall(body: string): SesCall | string {
  const { FromEmailAddress, Destination, Content, EmailTags, ConfigurationSetName } = JSON.parse(body)
  const to: string[] = Destination?.ToAddresses ?? []
  const tags: { Name: string; Value: string }[] = EmailTags ?? []
  if (to.length === 0 || to.length > 50) return 'between 1 and 50 recipients'
  if (tags.some(({ Name, Value }) => !/^[\w-]{1,256}$/.test(Name) || !/^[\w-]{1,256}$/.test(Value)))
    return 'a tag of other letters'
  if (typeof Content?.Raw?.Data !== 'string') return 'no raw content'
  const raw = Buffer.from(Content.Raw.Data, 'base64')
  if (/[^\r\n]{999}/.test(raw.toString('latin1'))) return 'a line too long'
  return {
    ...{ at: performance.now(), from: FromEmailAddress ?? '', to, raw },
    tags: Object.fromEntries(tags.map(({ Name, Value }) => [Name, Value])),
    configuration_set: ConfigurationSetName ?? null,
  }
}

function refuse(response: ServerResponse, { status, type, message }: Extract<SesFault, { type: string }>) {
  response.writeHead(status, { 'Content-Type': 'application/json', 'x-amzn-ErrorType': type })
  response.end(JSON.stringify(message === undefined ? {} : { message }))
}

function act(request: IncomingMessage, response: ServerResponse, fault: SesFault | undefined, id: string) {
  if (fault === 'hang') return
  if (fault === 'drop') request.socket.destroy()
  else if (typeof fault === 'object' && 'type' in fault) refuse(response, fault)
  else if (typeof fault === 'object') response.end(JSON.stringify(fault.json))
  else {
    response.writeHead(200, { 'Content-Type': 'application/json' })
    const body = { 'no id': '{}', 'broken json': '{"MessageId":' }
    response.end(fault === undefined ? JSON.stringify({ MessageId: id }) : body[fault])
  }
}

function answerAccount(request: IncomingMessage, response: ServerResponse, answer: number | SesFault): void {
  if (typeof answer !== 'number') {
    act(request, response, answer, '')
    return
  }
  response.writeHead(200, { 'Content-Type': 'application/json' })
  const SendQuota = { Max24HourSend: 50_000, MaxSendRate: answer, SentLast24Hours: 0 }
  response.end(JSON.stringify({ SendQuota, SendingEnabled: true, ProductionAccessEnabled: true }))
}
