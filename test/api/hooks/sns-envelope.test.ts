/** The envelope of SNS: its fields, the signed string and its URLs. ses.test.ts posts signed ones. */
import { createVerify } from 'node:crypto'
import {
  certificateUrl,
  confirmationUrl,
  parseEnvelope,
  type SnsEnvelope,
  stringToSign,
  TOPIC_ARN,
} from '../../../api/hooks/sns-envelope.ts'
import { makeCertificate } from '../../support/certificate.ts'
import { aConfirmation, aNotification, type Fields, SNS_HOST, signed, TOPIC } from '../../support/sns.ts'
import t from '../../support/tap.ts'

const CERTIFICATE = makeCertificate([SNS_HOST])
const Signature = 'A'.repeat(344)
const parsed = (fields: object) => parseEnvelope(Buffer.from(JSON.stringify(fields)))
const without = (fields: Fields, name: string) =>
  Object.fromEntries(Object.entries(fields).filter(([key]) => key !== name))

t.test('an envelope has valid fields, and more are allowed', async (t) => {
  const notification = aNotification({ Signature })
  const kinds = [
    ...[
      notification,
      aConfirmation({ Signature }),
      aConfirmation({ Signature, Type: 'UnsubscribeConfirmation' }),
    ],
    ...[without(notification, 'Subject'), { ...notification, Subject: null, More: {} }],
    ...[
      { ...notification, Message: '' },
      { ...notification, SignatureVersion: '1' },
    ],
    ...[
      { ...notification, MessageId: 'x'.repeat(100) },
      { ...notification, SigningCertURL: 'x'.repeat(3_000) },
    ],
    ...['A'.repeat(100), `${'z09+/'.repeat(400)}==`, `${Signature}=`].map((given) => ({
      ...{ ...notification, Signature: given },
    })),
    ...[{ ...notification, SubscribeURL: 'x'.repeat(3_000), Token: '' }],
  ]
  for (const fields of kinds) t.strictSame(parsed(fields), fields)
  const changes: object[] = [
    ...[
      'Type',
      'MessageId',
      'TopicArn',
      'Timestamp',
      'SignatureVersion',
      'Signature',
      'SigningCertURL',
    ].flatMap((name) => ['', null, 1, undefined].map((value) => ({ [name]: value }))),
    ...[null, 1, undefined, { a: 1 }].map((Message) => ({ Message })),
    ...['Notifications', 'notification'].map((Type) => ({ Type })),
    ...['0', '3', '12'].map((SignatureVersion) => ({ SignatureVersion })),
    ...['A'.repeat(99), 'A'.repeat(2_001), `${Signature}===`, `%${Signature}`, `${Signature}%`].map(
      (given) => ({ ...{ Signature: given } }),
    ),
    ...[{ MessageId: 'x'.repeat(101) }, { SigningCertURL: 'x'.repeat(3_001) }, { Subject: 1 }],
    ...[{ SubscribeURL: 'x'.repeat(3_001) }, { Token: 'x'.repeat(3_001) }, { Token: 1 }],
  ]
  for (const change of changes) t.equal(parsed({ ...notification, ...change }), null, JSON.stringify(change))
  for (const name of ['SubscribeURL', 'Token'])
    for (const value of [undefined, '', null, 'x'.repeat(3_001)])
      for (const Type of ['SubscriptionConfirmation', 'UnsubscribeConfirmation'])
        t.equal(parsed({ ...aConfirmation({ Signature, Type }), [name]: value }), null, `${name} ${value}`)
  for (const text of ['', '{', 'null', '1', '"x"', '[]', '{}'])
    t.equal(parseEnvelope(Buffer.from(text)), null, text)
  const bytes = Buffer.from(
    JSON.stringify({ ...notification, Message: '\x01' }).replace('\\u0001', '\xff'),
    'latin1',
  )
  t.equal(parseEnvelope(bytes), null, 'not UTF-8')
})

t.test('the signed string matches AWS’s for every type', async (t) => {
  for (const fields of [
    ...[aNotification(), without(aNotification(), 'Subject'), aConfirmation({ SignatureVersion: '2' })],
    aConfirmation({ SignatureVersion: '2', Type: 'UnsubscribeConfirmation' }),
  ]) {
    const envelope = JSON.parse(signed(CERTIFICATE, fields)) as SnsEnvelope
    const verify = createVerify('RSA-SHA256').update(stringToSign(envelope))
    t.ok(verify.verify(CERTIFICATE.pem, envelope.Signature, 'base64'), `${fields.Type}`)
  }
  const bare = { ...without(aNotification({ Message: 'm', MessageId: 'i' }), 'Subject'), Subject: null }
  t.equal(
    stringToSign(bare as unknown as SnsEnvelope),
    `Message\nm\nMessageId\ni\nTimestamp\n2026-03-01T12:00:00.000Z\nTopicArn\n${TOPIC}\nType\nNotification\n`,
  )
})

t.test('a topic ARN has a partition, region, account and name', async (t) => {
  const arn = (partition: string, region: string, account: string, name: string) =>
    `arn:${partition}:sns:${region}:${account}:${name}`
  const account = '123456789012'
  for (const given of [
    ...[TOPIC, arn('aws-cn', 'cn-north-1', account, 'x'), arn('aws', 'abc', account, `${'a_-'.repeat(85)}z`)],
    arn('aws-us-gov', 'us-gov-east-1', account, 'x.fifo'),
  ])
    t.match(given, TOPIC_ARN)
  for (const given of [
    ...[`x${TOPIC}`, `${TOPIC}\n`, `${TOPIC} x`, TOPIC.replace('sns', 'sqs'), TOPIC.replace('arn', '')],
    ...[arn('gcp', 'abc', account, 'x'), arn('awsX', 'abc', account, 'x'), arn('aws', 'ab', account, 'x')],
    ...[
      arn('aws', 'a b', account, 'x'),
      arn('aws', 'ABC', account, 'x'),
      arn('aws', 'abc', `${account}3`, 'x'),
    ],
    ...[arn('aws', 'abc', '12345678901', 'x'), arn('aws', 'abc', 'x23456789012', 'x')],
    ...[arn('aws', 'abc', account, ''), arn('aws', 'abc', account, 'a'.repeat(257))],
    ...[
      arn('aws', 'abc', account, 'a.b'),
      arn('aws', 'abc', account, 'x.fifox'),
      arn('aws', 'abc', account, 'a!'),
    ],
  ])
    t.notMatch(given, TOPIC_ARN)
})

const CHINA = TOPIC.replace('aws:sns:eu-west-1', 'aws-cn:sns:cn-north-1')
const PATH = '/SimpleNotificationService-0_a.pem'

t.test('a certificate must be at SNS in the topic’s region', async (t) => {
  const at = (SigningCertURL: string, TopicArn = TOPIC) =>
    certificateUrl({ ...aNotification({ SigningCertURL, TopicArn }) } as unknown as SnsEnvelope)?.href ?? null
  const [own, chinese] = [`https://${SNS_HOST}${PATH}`, `https://sns.cn-north-1.amazonaws.com.cn${PATH}`]
  t.equal(at(own), own)
  t.equal(at(chinese, CHINA), chinese)
  const long = (size: number) => `https://${SNS_HOST}/${'a'.repeat(size)}.pem`
  t.equal(at(long(200)), long(200))
  const odd: [url: string, topic?: string][] = [
    ...([
      [own, CHINA],
      [chinese],
      [own, 'no topic'],
      [`https://evil.test${PATH}`, 'no topic'],
      [own, `x${TOPIC}`],
      [long(201)],
    ] as [string, string?][]),
    [`https://${SNS_HOST}.cn${PATH}`],
    [`https://sns.cn-north-1.amazonaws.com${PATH}`, CHINA],
    ...[
      ...[`http://${SNS_HOST}${PATH}`, `https://${SNS_HOST}:444${PATH}`, `https://${SNS_HOST}:443${PATH}`],
      ...[
        `https://a@${SNS_HOST}${PATH}`,
        `https://:b@${SNS_HOST}${PATH}`,
        `https://sns.us-east-1.amazonaws.com${PATH}`,
      ],
      ...[`https://x${SNS_HOST}${PATH}`, `https://${SNS_HOST}.test${PATH}`, `https://${SNS_HOST}/.pem`],
      ...[`https://${SNS_HOST}/x${PATH}`, `${own}x`, `${own}?a`, `${own}#a`, ` ${own}`, 'no url', ''],
      ...[`https://${SNS_HOST}/a.txt`, `https://${SNS_HOST}/a!.pem`, `https://${SNS_HOST}/apem`],
      `https://snsxeu-west-1.amazonaws.com${PATH}`,
      `https://sns.eu-west-1xamazonaws.com${PATH}`,
      `https://sns.eu-west-1.amazonawsxcom${PATH}`,
      own.replace('https', 'HTTPS'),
      ...[`https://evil.test/${SNS_HOST}${PATH}`, `https://${SNS_HOST}@evil.test${PATH}`, `file://${PATH}`],
      ...[`https://${SNS_HOST.toUpperCase()}${PATH}`, `https://sns.s3.amazonaws.com${PATH}`],
      ...[`https://${SNS_HOST}/a/../../b${PATH}`, `https://${SNS_HOST}/%2e%2e${PATH}`],
      ...[`https:\\\\evil.test\\${SNS_HOST}\\a.pem`, `https://evil.test\t.${SNS_HOST}${PATH}`],
    ].map((url): [string] => [url]),
  ]
  for (const [url, topic] of odd) t.equal(at(url, topic), null, `${url} ${topic ?? ''}`)
})

t.test('a confirmation URL must confirm this topic with this token', async (t) => {
  const { SubscribeURL: url = '', Token = '' } = aConfirmation()
  const at = (change: object) =>
    confirmationUrl({ ...aConfirmation(), ...change } as unknown as SnsEnvelope)?.href ?? null
  t.equal(at({}), url)
  t.equal(at({ SubscribeURL: url.replace('.com/?', '.com?') }), url, 'a path that is the same')
  const others = [
    ...[
      url.replace('/?', '/x?'),
      `${url}#x`,
      url.replace('Action=Confirm', 'Action=Delete'),
      `${url}&Token=x`,
    ],
    ...[url.replace(Token, 'other'), url.replace(TOPIC, `${TOPIC}2`), url.replace('eu-west', 'us-east'), ''],
    ...[
      url.replace('https', 'http'),
      url.replace('.com/', '.com:444/'),
      url.replace('sns.', ':b@sns.'),
      url.replace('sns.', 'a@sns.'),
      url.slice(0, url.indexOf('?')),
      undefined,
    ],
  ]
  for (const SubscribeURL of others) t.equal(at({ SubscribeURL }), null, `${SubscribeURL}`)
  t.equal(at({ Token: undefined }), null)
})
