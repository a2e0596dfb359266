/**
 * A stand-in for Amazon SNS in one region: a TLS server under SNS's host name with its own key pair. It
 * serves the signing certificate, accepts confirmations, and signs what the test sends. It counts every
 * connection of the code under test, to any host; only SNS's host responds. It doesn't import the hook: the
 * signed string is defined here independently, from AWS's documentation.
 */
import { randomUUID, sign } from 'node:crypto'
import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Agent, createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { connect } from 'node:tls'
import { type Certificate, makeCertificate } from './certificate.ts'
import type { Teardown } from './smtp-sink.ts'

export const SNS_HOST = 'sns.eu-west-1.amazonaws.com'
export const TOPIC = 'arn:aws:sns:eu-west-1:123456789012:ses-events'

export type Fields = Record<string, string>

export type SnsStandIn = {
  /** For the code under test: how it reaches SNS. */
  agent: Agent
  /** `host:port` of every requested connection. */
  connections: string[]
  /** Requested paths with their query. */
  requests: string[]
  certificate: Certificate
  /** Sets what the server does instead of serving the certificate or accepting a confirmation. */
  onRequest(act: (request: IncomingMessage, response: ServerResponse) => boolean): void
}

/**
 * Starts SNS, which ends with the test.
 * @param certificate its signing certificate. `tls` is its server's.
 */
export async function startSns(
  t: Teardown,
  certificate: Certificate = makeCertificate([SNS_HOST]),
  tls: Certificate = certificate,
): Promise<SnsStandIn> {
  const requests: string[] = []
  let act: Parameters<SnsStandIn['onRequest']>[0] = () => false
  const server = createServer({ cert: tls.pem, key: tls.key_pem }, (request, response) => {
    requests.push(request.url ?? '')
    if (act(request, response)) return
    if (request.url?.endsWith('.pem')) response.end(certificate.pem)
    else response.end('<ConfirmSubscriptionResponse/>')
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const connections: string[] = []
  const agent = new Agent({ keepAlive: false })
  Object.assign(agent, {
    createConnection(options: { host: string; port: number }) {
      connections.push(`${options.host}:${options.port}`)
      const known = options.host === SNS_HOST && Number(options.port) === 443
      return connect({
        ...{ host: '127.0.0.1', port: known ? port : 1 },
        servername: options.host,
        ca: tls.pem,
      })
    },
  })
  t.teardown(async () => {
    agent.destroy()
    server.closeAllConnections()
    server.close()
  })
  return {
    agent,
    connections,
    requests,
    certificate,
    onRequest: (given) => {
      act = given
    },
  }
}

const NAMES = {
  Notification: ['Message', 'MessageId', 'Subject', 'Timestamp', 'TopicArn', 'Type'],
  Confirmation: ['Message', 'MessageId', 'SubscribeURL', 'Timestamp', 'Token', 'TopicArn', 'Type'],
}

/** Signs fields as SNS does and gives the body it posts. `after` changes fields that the signature should cover. */
export function signed({ key }: Certificate, fields: Fields, after: Fields = {}): string {
  const names = fields.Type === 'Notification' ? NAMES.Notification : NAMES.Confirmation
  let text = ''
  for (const name of names) if (name in fields) text += `${name}\n${fields[name]}\n`
  const hash = fields.SignatureVersion === '1' ? 'RSA-SHA1' : 'RSA-SHA256'
  const Signature = sign(hash, Buffer.from(text), key).toString('base64')
  return JSON.stringify({ ...fields, Signature, ...after }, null, 2)
}

/** A notification, unsigned. */
export const aNotification = (changes: Fields = {}): Fields => ({
  Type: 'Notification',
  MessageId: randomUUID(),
  TopicArn: TOPIC,
  Subject: 'Amazon SES Email Event Notification',
  Message: '{"eventType":"Send"}\n',
  Timestamp: '2026-03-01T12:00:00.000Z',
  SignatureVersion: '2',
  SigningCertURL: `https://${SNS_HOST}/SimpleNotificationService-0123456789abcdef.pem`,
  UnsubscribeURL: `https://${SNS_HOST}/?Action=Unsubscribe&SubscriptionArn=${TOPIC}:x`,
  ...changes,
})

/** A request to confirm a subscription, or word of its end; unsigned. */
export function aConfirmation(changes: Fields = {}): Fields {
  const Token = 'a1b2c3'.repeat(40)
  return {
    Type: 'SubscriptionConfirmation',
    MessageId: randomUUID(),
    Token,
    TopicArn: TOPIC,
    Message: `You have chosen to subscribe to the topic ${TOPIC}.`,
    SubscribeURL: `https://${SNS_HOST}/?Action=ConfirmSubscription&TopicArn=${TOPIC}&Token=${Token}`,
    Timestamp: '2026-03-01T12:00:00.000Z',
    SignatureVersion: '1',
    SigningCertURL: `https://${SNS_HOST}/SimpleNotificationService-0123456789abcdef.pem`,
    ...changes,
  }
}
