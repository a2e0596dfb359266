/**
 * Simulates Amazon SNS in one region with a TLS server under SNS's host name and its own key pair. It serves
 * the signing certificate, accepts confirmations, and signs a test's messages. It counts every connection of
 * the code under test, to any host, and only SNS's host responds. It doesn't import the hook. The signed
 * string is defined here independently, from AWS's documentation.
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
  /** The agent with which the code under test connects to SNS. */
  agent: Agent
  /** `host:port` of every requested connection. */
  connections: string[]
  /** Requested paths with their query. */
  requests: string[]
  certificate: Certificate
  /** Replaces the server's reaction to requests. Return false for the normal reaction. */
  onRequest(act: (request: IncomingMessage, response: ServerResponse) => boolean): void
}

/**
 * Starts the server, which ends with the test.
 * @param certificate the signing certificate. `tls` is the server's.
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

/** Signs fields like SNS. @returns the posted body. `after` changes fields after signing. */
export function signed({ key }: Certificate, fields: Fields, after: Fields = {}): string {
  const names = fields.Type === 'Notification' ? NAMES.Notification : NAMES.Confirmation
  let text = ''
  for (const name of names) if (name in fields) text += `${name}\n${fields[name]}\n`
  const hash = fields.SignatureVersion === '1' ? 'RSA-SHA1' : 'RSA-SHA256'
  const Signature = sign(hash, Buffer.from(text), key).toString('base64')
  return JSON.stringify({ ...fields, Signature, ...after }, null, 2)
}

/** Builds an unsigned notification. */
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

/** Builds an unsigned request to confirm a subscription or its end. */
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
