/** The unsubscribe link of templates, in bodies and headers. DECISIONS: Unsubscribe link. */
import { v7 as uuidv7 } from 'uuid'
import { saveTemplate, updateTemplate } from '../../../db/content/templates/save.ts'
import { unsubscribeUrl } from '../../../db/messages/emails/unsubscribe-token.ts'
import { anEmail, byCli, type Service, startService, type TestTeam, world } from '../../support/service.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t from '../../support/tap.ts'
import { startWorker, until } from '../../support/worker.ts'

const PUBLIC = 'https://mail.example.com'
const { service, team } = await world(t, { publicUrl: `${PUBLIC}/` })
await service.call('POST', '/v1/contacts', { key: team.key, body: { email: 'Ana@example.org' } })

const HTML = '<a href="{{unsubscribe_url}}">{{word}}</a>'
const save = (list_unsubscribe = false, html = HTML) =>
  service.database.transaction((tx) =>
    saveTemplate(byCli(tx), team.id, {
      name: uuidv7(),
      html,
      text: 'Stop: {{unsubscribe_url}}',
      list_unsubscribe,
    }),
  )

const send = (
  { call }: Pick<Service, 'call'>,
  { key }: Pick<TestTeam, 'key'>,
  template_id: string,
  changes: Record<string, unknown> = {},
) =>
  call('POST', '/v1/emails', {
    key,
    body: anEmail({
      html: undefined,
      template_id,
      to: ['ana@example.org'],
      variables: { word: 'Stop' },
      ...changes,
    }),
  })

t.test('emails to one stored contact have their own link', async (t) => {
  const { id, slots } = await save()
  t.same(slots, ['unsubscribe_url', 'word'])
  for (const variables of [{ word: 'Stop' }, { word: 'Stop', unsubscribe_url: 'https://else.test/' }]) {
    const { status, body } = await send(service, team, id, { variables })
    t.equal(status, 201, JSON.stringify(body))
    const url = unsubscribeUrl(PUBLIC, body.unsubscribe_token)
    t.equal(body.html, `<a href="${url.replaceAll('=', '&#x3D;')}">Stop</a>`)
    t.equal(body.body_text, `Stop: ${url}`)
    const page = await service.call('GET', new URL(url).pathname)
    t.match(page, { status: 200, body: /Ana@example\.org/ })
  }
})

t.test('other emails need unsubscribe_url in their variables', async (t) => {
  const { id } = await save()
  for (const to of [['stranger@example.org'], ['ana@example.org', 'bob@example.org']]) {
    t.match(await send(service, team, id, { to }), {
      status: 400,
      body: {
        error: {
          code: 'bad_request',
          message: /variables must contain every variable .* Missing: unsubscribe_url/,
        },
      },
    })
    const variables = { word: 'Stop', unsubscribe_url: 'https://else.test/u' }
    t.match(await send(service, team, id, { to, variables }), {
      status: 201,
      body: { body_text: 'Stop: https://else.test/u' },
    })
  }
  const nowhere = await startService(t, { url: service.url })
  t.match(await send(nowhere, team, id), { status: 400 }, 'nobody knows where recipients reach us')
})

t.test('templates can add List-Unsubscribe unless the client sets it', async (t) => {
  const sink = await startSmtpSink(t)
  await startWorker(t, service, { smtp_url: sink.url })
  const { id, slots } = await save(true, '<p>{{word}}</p>')
  t.same(slots, ['word', 'unsubscribe_url'], 'the headers need the link as a slot does')
  const headersOf = async (changes: Record<string, unknown> = {}) => {
    const { status, body } = await send(service, team, id, changes)
    t.equal(status, 201, JSON.stringify(body))
    const arrived = () => sink.messages().find(({ raw }) => raw.includes(body.id))
    await until('it has arrived', async () => arrived() !== undefined)
    const raw = arrived()?.raw.toString() ?? ''
    const [head = ''] = raw.split('\r\n\r\n', 1)
    const lists = head
      .replaceAll('\r\n ', '')
      .split('\r\n')
      .filter((line) => /^list-/i.test(line))
    return {
      lists,
      signed: /h=[^;]*list-unsubscribe:\s*list-unsubscribe-post/i.test(head.replace(/\s+/g, '')),
      token: body.unsubscribe_token,
    }
  }
  const own = await headersOf()
  t.same(own.lists, [
    `List-Unsubscribe: <${unsubscribeUrl(PUBLIC, own.token)}>`,
    'List-Unsubscribe-Post: List-Unsubscribe=One-Click',
  ])
  t.ok(own.signed, 'both are covered by the signature')
  const client = await headersOf({ headers: { 'list-unsubscribe': '<mailto:off@example.com>' } })
  t.same(client.lists, ['list-unsubscribe: <mailto:off@example.com>'])
  const url = { unsubscribe_url: 'https://else.test/?a=1' }
  const given = await headersOf({ to: ['stranger@example.org'], variables: { word: 'x', ...url } })
  t.equal(given.lists[0], 'List-Unsubscribe: <https://else.test/?a=1>')
  for (const bad of [
    'javascript:x',
    'https://x.test/ >',
    'https://x.test/\r\nX: y',
    `https://x.test/${'a'.repeat(999)}`,
  ]) {
    t.match(
      await send(service, team, id, {
        to: ['stranger@example.org'],
        variables: { word: 'x', unsubscribe_url: bad },
      }),
      { status: 400, body: { error: { message: /unsubscribe_url/ } } },
    )
  }
  await updateTemplate(byCli(service.database), team.id, id, { html: '<p>two</p>', text: undefined })
  t.equal((await headersOf()).lists.length, 2, 'a new version keeps them')
  const without = { html: '<p>3</p>', text: '', list_unsubscribe: false }
  await updateTemplate(byCli(service.database), team.id, id, without)
  t.same((await headersOf()).lists, [])
})
