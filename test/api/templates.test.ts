/** Template sends. DECISIONS: Variables, HTML of template emails, Text. */
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { saveTemplate, updateTemplate } from '../../db/content/templates/save.ts'
import { tableSize } from '../support/rows.ts'
import { anEmail, byCli, world } from '../support/service.ts'
import t from '../support/tap.ts'

const { service, team } = await world(t)
const save = async (html: string, text = '', teamId = team.id) =>
  await service.database.transaction((tx) => saveTemplate(byCli(tx), teamId, { name: uuidv7(), html, text }))
const send = async (changes: Record<string, unknown>) =>
  await service.call('POST', '/v1/emails', { key: team.key, body: anEmail({ html: undefined, ...changes }) })

t.test('fills variables, and escapes values only in HTML', async (t) => {
  const { id } = await save('<p>Hi {{name}}</p>', 'Hi {{name}}')
  const { status, body } = await send({ template_id: id, variables: { name: '<b>"A" & \'B\'</b> {{name}}' } })
  t.equal(status, 201)
  t.equal(body.template_id, id)
  t.notMatch(body.html, /<b>/)
  t.match(body.html, /^<p>Hi &lt;b&gt;&quot;A&quot; &amp; /)
  t.equal(body.body_text, 'Hi <b>"A" & \'B\'</b> {{name}}')
  t.equal(body.size_kb, Math.round((body.html.length / 1024) * 100) / 100)
})

t.test('values in links keep =, except in versions of 0.1.0', async (t) => {
  const html = '<a href="https://x.test/?t={{t}}">{{t}}</a>'
  const variables = { t: 'a=b&c' }
  const { id } = await save(html)
  const sent = await send({ template_id: id, variables })
  t.equal(sent.body.html, '<a href="https://x.test/?t=a=b&amp;c">a&#x3D;b&amp;c</a>')
  const old = await save(html)
  await service.database.query(sql.unsafe`
    update template_versions set keeps_equals = default where team_id = ${team.id} and id = ${old.version_id}`)
  const kept = await send({ template_id: old.id, variables })
  t.equal(kept.body.html, '<a href="https://x.test/?t=a&#x3D;b&amp;c">a&#x3D;b&amp;c</a>')
})

t.test('the template replaces html, and the request’s text the template’s', async (t) => {
  const { id } = await save('<p>template</p>', 'template text')
  const { body } = await send({ template_id: id, html: '<p>raw</p>', text: 'own text' })
  t.equal(body.html, '<p>template</p>')
  t.equal(body.body_text, 'own text')
  t.equal((await send({ template_id: id })).body.body_text, 'template text')
})

t.test('missing variables are named, and extra ones ignored', async (t) => {
  const { id } = await save('<p>{{a}} {{b.c}} {{constructor}}</p>')
  const { status, body } = await send({ template_id: id, variables: { a: 'x', other: 'y' } })
  t.equal(`${status} ${body.error.code}`, '400 bad_request')
  t.match(body.error.message, /b\.c, constructor/)
  t.equal((await send({ template_id: id })).body.error.code, 'bad_request')
  const filled = await send({
    template_id: id,
    variables: { a: '1', 'b.c': '2', constructor: '3', other: '4' },
  })
  t.equal(filled.body.html, '<p>1 2 3</p>')
})

t.test('a send has at most 10,000 variables', async (t) => {
  const { id } = await save('<p>{{k9999}}</p>')
  const variables = Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`k${index}`, 'x']))
  t.equal((await send({ template_id: id, variables })).body.html, '<p>x</p>')
  const { status, body } = await send({ template_id: id, variables: { ...variables, more: 'x' } })
  t.equal(`${status} ${body.error.code}`, '400 bad_request')
  t.equal(body.error.message, 'variables must have at most 10000 keys.')
})

t.test('html and text with values have at most 1 MiB', async (t) => {
  const MIB = 1024 * 1024
  const { id } = await save('{{a}}{{a}}', '{{a}}')
  const amp = '&'.repeat(MIB / 10)
  const fits = await send({ template_id: id, variables: { a: amp } })
  t.equal(`${fits.status} ${fits.body.size_kb}`, '201 1023.99', '&amp; is five bytes of html')
  const over = await send({ template_id: id, variables: { a: `${amp}&` }, idempotency_key: 'large' })
  t.equal(`${over.status} ${over.body.error?.code}`, '400 bad_request')
  t.match(over.body.error.message, /^variables must not make the html larger than 1048576 bytes/)
  const again = await send({ template_id: id, variables: { a: 'x' }, idempotency_key: 'large' })
  t.equal(again.status, 201, 'a refused send binds no key')
  const { id: wordy } = await save('x', '{{a}}{{a}}')
  const long = await send({ template_id: wordy, variables: { a: 'é'.repeat(MIB / 4 + 1) } })
  t.match(long.body.error.message, /^variables must not make the text/)
  const own = { template_id: wordy, variables: { a: 'é'.repeat(MIB / 4 + 1) }, text: 'own' }
  t.equal((await send(own)).status, 201, 'the text that is sent counts')
  const many = await save('{{a}}'.repeat(60))
  const huge = { template_id: many.id, variables: { a: 'x'.repeat(9 * MIB) } }
  const { body } = await service.call('POST', '/v1/emails/batch', {
    key: team.key,
    body: { emails: [anEmail(), anEmail({ html: undefined, ...huge })] },
  })
  t.match(body.data, [{ id: /./ }, { error: { code: 'bad_request', message: /^emails\[1\]\.variables/ } }])
})

t.test('__proto__ is an ordinary variable', async (t) => {
  const { id } = await save('<p>{{__proto__}}</p>')
  const raw = JSON.stringify(anEmail({ template_id: id })).replace(/}$/, ',"variables":{"__proto__":"x"}}')
  const { body } = await service.call('POST', '/v1/emails', {
    key: team.key,
    raw,
    headers: { 'Content-Type': 'application/json' },
  })
  t.equal(body.html, '<p>x</p>')
  t.equal(({} as { x?: string }).x, undefined)
})

t.test('a replay shows the template version that was accepted', async (t) => {
  const { id } = await save('<p>one {{n}}</p>')
  const first = await send({ template_id: id, variables: { n: '1' }, idempotency_key: 'k' })
  await updateTemplate(byCli(service.database), team.id, id, { html: '<p>two</p>', text: undefined })
  t.equal((await send({ template_id: id, idempotency_key: 'k' })).body.html, first.body.html)
  t.equal((await send({ template_id: id })).body.html, '<p>two</p>')
})

t.test('variables aren’t filled in raw HTML', async (t) => {
  const html = '<p>{{name}} {{{x}}} {{#if}}</p>'
  t.equal((await send({ html, variables: { name: 'x' } })).body.html, html)
})

t.test('large templates aren’t stored per email', async (t) => {
  const { id } = await save(`<p>{{name}}</p>${'x'.repeat(50 * 1024)}`)
  const size = () => tableSize(service)
  const before = await size()
  const emails = Array.from({ length: 100 }, () =>
    anEmail({ html: undefined, template_id: id, variables: { name: 'Someone' } }),
  )
  for (let index = 0; index < 10; index++)
    t.equal((await service.call('POST', '/v1/emails/batch', { key: team.key, body: { emails } })).status, 200)
  const perRow = ((await size()) - before) / 1_000
  t.ok(perRow < 1_100, `${perRow} bytes a row`)
})
