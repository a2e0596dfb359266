/** The verbs of WhatsApp templates and messages. */
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { optedOutAmong } from '../../../db/messages/whatsapp/opt-outs.ts'
import { showMessage } from '../../../db/messages/whatsapp/show.ts'
import { createSecrets } from '../../../db/process/secrets.ts'
import { cloudError } from '../../sandbox/whatsapp.ts'
import { adminCli } from '../../support/admin.ts'
import { startCloud } from '../../support/cloud.ts'
import { EMPTY } from '../../support/empty.ts'
import { SECRET_KEY } from '../../support/environment.ts'
import { makeTeam, startService } from '../../support/service.ts'
import t from '../../support/tap.ts'
import {
  aTemplate,
  type Json,
  jobOf,
  loseJobs,
  makeTemplate,
  numbers,
  rowsOf,
  sendWhatsapp,
  setFailed,
  setStatus,
  setTaken,
  templateOf,
} from '../../support/whatsapp.ts'
import { startWorker, until } from '../../support/worker.ts'

const UNKNOWN = '0190a000-0000-7000-8000-000000000000'

const service = await startService(t)
const cli = adminCli({ DATABASE_URL: service.url })
const directory = t.testdir()

const file = async (content: unknown): Promise<string> => {
  await mkdir(directory, { recursive: true })
  const name = join(directory, `${Math.random().toString(36).slice(2)}.json`)
  await writeFile(name, typeof content === 'string' ? content : JSON.stringify(content))
  return name
}

t.test('whatsapp-template create prints ID, variables and status', async (t) => {
  const team = await makeTeam(service)
  const create = ['whatsapp-template', 'create', team.id, '--file']
  const definition = aTemplate({
    header: { format: 'TEXT', text: '{{1}}' },
    body: 2,
    buttons: [{ type: 'QUICK_REPLY' }, { type: 'URL', url: 'https://a.b/{{1}}' }],
  })
  const made = await cli.json([...create, await file(definition)])
  t.match(made, { slots: ['header:1', 'body:1', 'body:2', 'url:1'], status: 'approved', supported: true })
  const piped = await cli.json([...create, '-'], {
    input: JSON.stringify(aTemplate({ header: { format: 'GIF' } })),
  })
  t.match(piped, { supported: false, unsupported: /gif/, slots: EMPTY })
  const { status: _, ...unsaid } = aTemplate()
  t.match(await cli.json([...create, await file(unsaid)]), { status: 'pending' })
  t.match(await cli.json(['whatsapp-template', 'list', team.id]), [made, piped, { status: 'pending' }])
})

t.test('whatsapp-template create explains the error in a file', async (t) => {
  const team = await makeTeam(service)
  const create = ['whatsapp-template', 'create', team.id, '--file', '-']
  t.match(await cli.fault(create, { input: '{' }), /isn't valid JSON/)
  const fault = async (content: unknown, id = team.id): Promise<string> =>
    await makeTemplate(service, id, content as Json).then(
      () => 'none',
      (error: Error) => error.message,
    )
  const twice = aTemplate()
  await makeTemplate(service, team.id, twice)
  t.match(await fault(twice), /already has a template order_ready_\w+ \(en_US\)/)
  const odd: [unknown, RegExp][] = [
    [[], /must be an object/],
    [aTemplate({}, { name: '' }), /name must be/],
    [aTemplate({}, { language: { code: 'en' } }), /language must be/],
    [aTemplate({}, { components: 'x' }), /components must be an array/],
    [aTemplate({}, { status: 'ODD' }), /status must be one of approved, pending/],
    [aTemplate({}, { name: 'a\0b' }), /NUL/],
    [aTemplate({}, { padding: 'x'.repeat(300_000) }), /256 KiB/],
  ]
  for (const [content, words] of odd) t.match(await fault(content), words)
  t.match(await fault(aTemplate(), UNKNOWN), /No team/)
})

t.test('whatsapp-template status sets the state, in either case', async (t) => {
  const team = await makeTeam(service)
  const { id } = await makeTemplate(service, team.id)
  const set = (word: string) => cli.json(['whatsapp-template', 'status', team.id, id, word])
  t.match(await set('PAUSED'), { id, status: 'paused' })
  t.match(await set('approved'), { id, status: 'approved' })
  t.match(await cli.fault(['whatsapp-template', 'status', team.id, id, 'odd']), /must be one of/)
  await t.rejects(setStatus(service, team.id, UNKNOWN, 'paused'), /No template/)
})

t.test('whatsapp list and show print messages, events and waiting state', async (t) => {
  const team = await makeTeam(service)
  const { id: template_id } = await makeTemplate(service, team.id)
  const message = { to: numbers(2), idempotency_key: 'k' }
  const [first = '', second] = await sendWhatsapp(service, team, template_id, message)
  const list = await cli.json(['whatsapp', 'list', team.id])
  t.match(list, [
    { id: second },
    { id: first, to: numbers(1)[0], status: 'queued', template_id, idempotency_key: 'k' },
  ])
  t.same(await cli.json(['whatsapp', 'list', team.id, '--status', 'read']), [])
  const show = () => cli.json(['whatsapp', 'show', team.id, first])
  t.match(await show(), {
    id: first,
    team_id: team.id,
    to: numbers(1)[0],
    parameters: { 'body:1': 'Ana' },
    provider_message_id: null,
    events: EMPTY,
    waiting: { attempts: 0, last_response: null },
  })
  const cloud = await startCloud(t, {
    script: { onMessage: () => ({ status: 400, body: cloudError(131026, 'No') }) },
  })
  await startWorker(t, service, { whatsapp: cloud.delivery })
  await until('it failed', async () => (await rowsOf(service, team.id))[0]?.status === 'failed')
  const shown = await show()
  t.match(shown.events, [{ time: /Z$/, kind: 'failed', detail: /131026/, code: '131026' }])
  t.notOk('waiting' in shown)
  await t.rejects(
    showMessage({ tx: service.database, now: new Date() }, team.id, UNKNOWN),
    /No WhatsApp message/,
  )
})

t.test("whatsapp-template sync updates templates from the provider's list", async (t) => {
  const team = await makeTeam(service)
  const other = await makeTeam(service)
  const definition = aTemplate({ body: 1 }, { name: 'listed', language: 'en' })
  const listed = await makeTemplate(service, team.id, definition)
  await makeTemplate(service, team.id, aTemplate({}, { name: 'away', language: 'en' }))
  const foreign = await makeTemplate(service, other.id, definition)
  const now: Json = { ...definition, status: 'PAUSED', components: [{ type: 'BODY', text: '{{1}} {{2}}' }] }
  const fillers = Array.from({ length: 30 }, (_, index) => aTemplate({}, { name: `filler${index}` }))
  const cloud = await startCloud(t, { templates: [...fillers, now], page_size: 10 })
  await startWorker(t, service, { whatsapp: cloud.delivery })
  const { templates, missing } = await cli.json(['whatsapp-template', 'sync', team.id])
  t.match(templates, [
    { id: listed.id, status: 'paused', slots: ['body:1', 'body:2'] },
    { name: 'away', status: 'approved' },
  ])
  t.same(missing, ['away (en)'])
  t.match(await templateOf(service, foreign.id), { status: 'approved' })
})

t.test('whatsapp-template sync prints why the list could not be read', async (t) => {
  const team = await makeTeam(service)
  const cloud = await startCloud(t, {}, { access_token: 'with a blank' })
  await startWorker(t, service, { whatsapp: cloud.delivery })
  const fault = await cli.fault(['whatsapp-template', 'sync', team.id])
  t.match(fault, /Could not sync the templates: .*401 \(#190\)/)
})

t.test('whatsapp requeue accepts an ID, a filter and --force', async (t) => {
  const team = await makeTeam(service)
  const { id: template } = await makeTemplate(service, team.id)
  const ids = await sendWhatsapp(service, team, template, { to: numbers(4) })
  const [queued = '', refused = '', failedLater = '', taken = ''] = ids
  await loseJobs(service)
  await setTaken(service, taken)
  await setTaken(service, failedLater)
  for (const id of [refused, failedLater]) await setFailed(service, id)
  const requeue = ['whatsapp', 'requeue', team.id]

  t.match(await cli.fault(requeue), /Specify an ID, or a filter/)
  t.match(await cli.fault([...requeue, UNKNOWN]), /No WhatsApp message/)
  const fault = await cli.fault([...requeue, refused])
  t.match(fault, /The WhatsApp message was rejected permanently \(status: failed\)/)
  t.match(await cli.fault([...requeue, taken, '--force']), /can't be sent again/)

  const all = ['--since', '2026-01-01', '--force']
  const rehearsed = await cli.json([...requeue, ...all, '--dry-run'])
  t.match(rehearsed, { requeued: 2, dry_run: true, requeued_at: null })
  t.equal(await jobOf(service, queued), null, 'a dry run gives it no job')
  const requeued = await cli.json([...requeue, queued])
  t.match(requeued, { id: queued, status: 'queued', requeued_at: /Z$/, paused: EMPTY })
  t.ok(await jobOf(service, queued))
  t.strictSame((await cli.json([...requeue, '--status', 'queued'])).ids, [queued], 'nor what was taken')
  t.strictSame((await cli.json([...requeue, '--status', 'failed'])).ids, [], 'not without --force')
  t.strictSame((await cli.json([...requeue, '--status', 'failed', '--force'])).ids, [refused])
  const message = await cli.json(['whatsapp', 'show', team.id, refused])
  t.match(message, { status: 'queued', waiting: { state: 'not_taken_yet' }, events: [{ kind: 'requeued' }] })

  const cloud = await startCloud(t)
  await startWorker(t, service, { whatsapp: cloud.delivery })
  await until('both are sent', () => cloud.messages().length === 2)
  const sent = cloud
    .messages()
    .map(({ body }) => body.biz_opaque_callback_data)
    .sort()
  t.strictSame(sent, [`${team.id}:${queued}`, `${team.id}:${refused}`].sort(), 'each once')
})

t.test("contact export and erase cover a number's messages", async (t) => {
  const team = await makeTeam(service)
  const { id: owner } = team
  const { id: template } = await makeTemplate(service, owner, aTemplate({}, { category: 'MARKETING' }))
  const number = '+551187654321'
  const other = { 'body:1': 'Ana' }
  const send = (changes: Json = {}) =>
    sendWhatsapp(service, team, template, { to: [number], parameters: other, ...changes })
  const [id = ''] = await send()
  await setTaken(service, id)
  await send({ scheduled_at: new Date(Date.now() + 3_600_000).toISOString() })
  await cli.json(['whatsapp', 'opt-out', owner, '+5511987654321'])
  const exported = await cli.json(['contact', 'export', owner, number])
  t.match(exported, {
    number,
    whatsapp_messages: [{ id, to: number, parameters: other }, { to: number }],
    whatsapp_opt_outs: [{ to: '+5511987654321', opted_out: true, by: 'cli' }],
  })
  t.match(await cli.json(['contact', 'erase', owner, number]), {
    ...{ whatsapp_messages: 1, waiting_messages_deleted: 1, whatsapp_opt_outs: 1 },
  })
  t.same(await cli.json(['whatsapp', 'opt-outs', owner]), [], 'its hash is in no list')
  t.match(await cli.json(['whatsapp', 'list', owner]), [{ id, to: 'erased', parameters: EMPTY, wa_id: null }])
  t.match(await cli.fault(['contact', 'export', owner, number]), /contact_not_found|no message/i)
  t.match(await cli.fault(['contact', 'export', owner, '+1']), /an email address, or a number such as \+1555/)
  const secrets = createSecrets(SECRET_KEY)
  const message = { team_id: owner, recipient: number }
  const out = await optedOutAmong({ tx: service.database, secrets }, [message])
  t.ok(out.has(message), 'marketing to it stays unsent')
})
