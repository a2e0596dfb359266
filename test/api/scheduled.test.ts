/**
 * Scheduled sends over HTTP: accepted, shown, rejected, cancelled and rescheduled. DECISIONS: Scheduled
 * messages.
 */
import { auditEntries } from '../../db/accounts/audit/audit.sql.ts'
import { runClock, shiftClock } from '../support/clock.ts'
import { jobStates, removeDomains, usedBy } from '../support/rows.ts'
import { anEmail, makeKey, makeTeam, sendEmail, startService } from '../support/service.ts'
import t from '../support/tap.ts'
import { aMessage, isRefused, makeTemplate, numbers } from '../support/whatsapp.ts'

const service = await startService(t)
const { call, database } = service
const HOUR = 3_600_000
const ahead = (ms: number): string => new Date(Date.now() + ms).toISOString()
const IN_AN_HOUR = ahead(HOUR)
const NOBODY = '01920000-0000-7000-8000-000000000009'

/** Returns the channels with their bodies and rows. */
async function channels() {
  const team = await makeTeam(service)
  const template = await makeTemplate(service, team.id)
  return [
    {
      name: 'email',
      team,
      path: '/v1/emails',
      quota: 'emails' as const,
      send: (changes: object) => anEmail({ ...changes }),
      rowOf: (body: Record<string, unknown>) => body,
      items: 'emails',
    },
    {
      name: 'whatsapp',
      team,
      path: '/v1/whatsapp/messages',
      quota: 'whatsapp' as const,
      send: (changes: object) => aMessage(template.id, { ...changes }),
      rowOf: (body: { data: Record<string, unknown>[] }) => body.data[0] ?? {},
      items: 'messages',
    },
  ]
}

for (const { name, team, path, quota, send, rowOf, items } of await channels()) {
  const { key } = team
  const post = (changes: object) => call('POST', path, { key, body: send(changes) })
  const scheduled = async (changes: object = {}) => {
    const { status, body } = await post({ scheduled_at: IN_AN_HOUR, ...changes })
    if (status !== 201) throw new Error(JSON.stringify(body))
    return String(rowOf(body).id)
  }
  const cancel = (id: string, as = key) => call('POST', `${path}/${id}/cancel`, { key: as })
  const move = (id: string, scheduled_at: unknown, as = key) =>
    call('PATCH', `${path}/${id}`, { key: as, body: { scheduled_at } })

  t.test(`${name}: a scheduled send is queued without a job`, async (t) => {
    const { status, body } = await post({ scheduled_at: IN_AN_HOUR, expires_in: 600 })
    t.equal(status, 201)
    t.match(rowOf(body), {
      status: 'queued',
      scheduled_at: IN_AN_HOUR,
      expires_at: new Date(Date.parse(IN_AN_HOUR) + 600_000).toISOString(),
    })
    t.strictSame(await jobStates(service, String(rowOf(body).id)), [])
  })

  t.test(`${name}: a row has times only if they were set`, async (t) => {
    const plain = rowOf((await post({ scheduled_at: null, expires_in: null })).body)
    t.notOk('scheduled_at' in plain || 'expires_at' in plain)
    const before = Date.now()
    const { expires_at, scheduled_at, id } = rowOf((await post({ expires_in: 60 })).body)
    t.equal(scheduled_at, undefined)
    t.ok(Math.abs(Date.parse(String(expires_at)) - before - 60_000) < 5_000)
    t.strictSame(await jobStates(service, String(id)), ['created'])
  })

  t.test(`${name}: up to five minutes in the past means now`, async (t) => {
    const given = ahead(-4 * 60_000)
    const row = rowOf((await post({ scheduled_at: given, expires_in: 60 })).body)
    t.equal(row.scheduled_at, given)
    t.ok(Date.parse(String(row.expires_at)) > Date.now() + 50_000)
    t.strictSame(await jobStates(service, String(row.id)), ['created'])
    isRefused(t, await post({ scheduled_at: ahead(-6 * 60_000) }), 400, 'bad_request', /scheduled_at .*past/)
    isRefused(
      t,
      await post({ scheduled_at: ahead(91 * 24 * HOUR) }),
      400,
      'bad_request',
      /scheduled_at .*90 days/,
    )
    t.equal((await post({ scheduled_at: ahead(89 * 24 * HOUR) })).status, 201)
  })

  t.test(`${name}: a time with an offset is returned in UTC`, async (t) => {
    const offset = rowOf((await post({ scheduled_at: IN_AN_HOUR.replace('Z', '+00:00') })).body)
    t.equal(offset.scheduled_at, IN_AN_HOUR)
  })

  t.test(`${name}: a repeated call after its time is a replay`, async (t) => {
    const changes = { scheduled_at: ahead(HOUR), idempotency_key: `replayed-${name}` }
    const first = await post(changes)
    t.equal(first.status, 201)
    const later = { ...changes, scheduled_at: ahead(-24 * HOUR) }
    const again = await post(later)
    t.equal(again.status, 200)
    t.strictSame(rowOf(again.body), rowOf(first.body))
    isRefused(t, await post({ ...later, idempotency_key: `new-${name}` }), 400, 'bad_request', /past/)
  })

  t.test(`${name}: items of a batch are validated separately`, async (t) => {
    const given = [
      send({ scheduled_at: IN_AN_HOUR }),
      send({ scheduled_at: 'tomorrow' }),
      send({}),
      send({ scheduled_at: ahead(-HOUR) }),
      send({ expires_in: 1 }),
    ]
    const { body } = await call('POST', `${path}/batch`, { key, body: { [items]: given } })
    t.match(body.data, [
      { id: /./ },
      { error: { code: 'bad_request', message: new RegExp(`^${items}\\[1\\].scheduled_at must be`) } },
      { id: /./ },
      { error: { code: 'bad_request', message: new RegExp(`^${items}\\[3\\].scheduled_at .*past`) } },
      { error: { code: 'bad_request', message: new RegExp(`^${items}\\[4\\].expires_in`) } },
    ])
    t.strictSame(await jobStates(service, body.data[0].id), [])
    t.strictSame(await jobStates(service, body.data[2].id), ['created'])
  })

  t.test(`${name}: cancelling deletes the row and releases quota and key`, async (t) => {
    const changes = { idempotency_key: `cancelled-${name}` }
    const used = (await usedBy(service, team.id))[quota]
    const id = await scheduled(changes)
    t.equal((await usedBy(service, team.id))[quota], used + 1)
    const { status, body } = await cancel(id.toUpperCase())
    t.equal(status, 200)
    t.strictSame(body, { id })
    t.equal((await usedBy(service, team.id))[quota], used)
    isRefused(t, await cancel(id), 404, 'not_found')
    isRefused(t, await move(id, IN_AN_HOUR), 404, 'not_found')
    t.equal((await post({ scheduled_at: IN_AN_HOUR, ...changes })).status, 201)
  })

  t.test(`${name}: rescheduling also moves the expiry`, async (t) => {
    const id = await scheduled({ expires_in: 600, idempotency_key: `moved-${name}` })
    const to = ahead(2 * HOUR)
    const { status, body } = await move(id, to)
    t.equal(status, 200)
    t.strictSame(body, { id, scheduled_at: to })
    const replay = rowOf((await post({ idempotency_key: `moved-${name}` })).body)
    t.match(replay, { scheduled_at: to, expires_at: new Date(Date.parse(to) + 600_000).toISOString() })
  })

  t.test(`${name}: errors are 400, 404, then 409`, async (t) => {
    for (const unknown of [NOBODY, 'no-uuid'])
      for (const odd of [undefined, null, 'tomorrow', ahead(-HOUR), ahead(91 * 24 * HOUR)])
        isRefused(t, await move(unknown, odd), 400, 'bad_request', /scheduled_at/)
    for (const unknown of [NOBODY, 'no-uuid']) {
      isRefused(t, await cancel(unknown), 404, 'not_found')
      isRefused(t, await move(unknown, IN_AN_HOUR), 404, 'not_found')
    }
    // Rejections are stored, and the address may have to be erased.
    isRefused(t, await cancel('ana@example.org'), 404, 'not_found', /^No [\w ]+ with this ID/)
    const gone = String(rowOf((await post({})).body).id)
    for (const reply of [await cancel(gone), await move(gone, IN_AN_HOUR)])
      isRefused(t, reply, 409, 'invalid_state')
  })

  t.test(`${name}: rescheduling to the stored time isn’t recorded`, async (t) => {
    const id = await scheduled()
    const entries = async () =>
      (await auditEntries(database, { team: team.id, limit: 50 })).filter(({ subject }) => subject === id)
    for (const same of [IN_AN_HOUR, IN_AN_HOUR.replace('Z', '+00:00')]) {
      const { status, body } = await move(id, same)
      t.equal(status, 200)
      t.strictSame(body, { id, scheduled_at: IN_AN_HOUR })
    }
    t.strictSame(await entries(), [])
    t.equal((await move(id, ahead(2 * HOUR))).status, 200)
    t.equal((await move(id, IN_AN_HOUR)).status, 200)
    t.equal((await entries()).length, 2)
  })

  t.test(`${name}: cancelling and rescheduling are in the audit log`, async (t) => {
    const id = await scheduled()
    await move(id, ahead(3 * HOUR))
    await cancel(id)
    const entries = (await auditEntries(database, { team: team.id, limit: 10 })).filter(
      ({ subject }) => subject === id,
    )
    t.match(
      entries.map(({ action, actor }) => ({ action, actor })),
      [
        { action: `${name}.cancel`, actor: key.slice(0, 10) },
        { action: `${name}.reschedule`, actor: key.slice(0, 10) },
      ],
    )
  })
}

t.test('email: a past scheduled_at is rejected before the from domain', async (t) => {
  const team = await makeTeam(service)
  const odd = { from: 'a@elsewhere.example', scheduled_at: ahead(-HOUR) }
  const reply = await call('POST', '/v1/emails', { key: team.key, body: anEmail(odd) })
  isRefused(t, reply, 400, 'bad_request', /past/)
})

t.test('whatsapp: a past scheduled_at is rejected before an unknown template', async (t) => {
  const team = await makeTeam(service)
  const body = aMessage(NOBODY, { scheduled_at: ahead(-HOUR) })
  isRefused(
    t,
    await call('POST', '/v1/whatsapp/messages', { key: team.key, body }),
    400,
    'bad_request',
    /past/,
  )
})

t.test('email: a key only cancels and reschedules its domain’s emails', async (t) => {
  const team = await makeTeam(service)
  const id = await sendEmail(service, team, { scheduled_at: IN_AN_HOUR })
  const key = await makeKey(service, team.id, { domain: 'other.example' })
  isRefused(t, await call('POST', `/v1/emails/${id}/cancel`, { key }), 403, 'domain_not_allowed')
  const moved = { scheduled_at: IN_AN_HOUR }
  isRefused(t, await call('PATCH', `/v1/emails/${id}`, { key, body: moved }), 403, 'domain_not_allowed')
  const own = await makeKey(service, team.id, { domain: 'example.com' })
  t.equal((await call('POST', `/v1/emails/${id}/cancel`, { key: own })).status, 200)
})

t.test('email: cancelling and rescheduling work after the domain was removed', async (t) => {
  const team = await makeTeam(service)
  const { key } = team
  const id = await sendEmail(service, { key }, { scheduled_at: IN_AN_HOUR })
  await removeDomains(service, team.id)
  const moved = (await call('PATCH', `/v1/emails/${id}`, { key, body: { scheduled_at: IN_AN_HOUR } })).status
  t.equal(moved, 200)
  t.equal((await call('POST', `/v1/emails/${id}/cancel`, { key })).status, 200)
})

t.test('whatsapp: a key replays the rest, free without one', async (t) => {
  const team = await makeTeam(service)
  const template = await makeTemplate(service, team.id)
  const { key } = team
  const send = { scheduled_at: IN_AN_HOUR, idempotency_key: 'three', to: numbers(3) }
  const post = () => call('POST', '/v1/whatsapp/messages', { key, body: aMessage(template.id, send) })
  const ids: string[] = (await post()).body.data.map(({ id }: { id: string }) => id)
  const cancel = (id: string) => call('POST', `/v1/whatsapp/messages/${id}/cancel`, { key })
  await cancel(ids[0] ?? '')
  const rest = await post()
  t.equal(rest.status, 200)
  const left = rest.body.data.map(({ id }: { id: string }) => id)
  t.strictSame(left, ids.slice(1))
  const both = await Promise.all(ids.slice(1).map(cancel))
  const statuses = both.map(({ status }) => status)
  t.strictSame(statuses, [200, 200])
  t.equal((await post()).status, 201)
})

t.test('email: only one concurrent cancellation succeeds', async (t) => {
  const team = await makeTeam(service)
  const { key } = team
  const id = await sendEmail(service, { key }, { scheduled_at: IN_AN_HOUR })
  const replies = await Promise.all(
    Array.from({ length: 8 }, () => call('POST', `/v1/emails/${id}/cancel`, { key })),
  )
  t.strictSame(replies.map(({ status }) => status).sort(), [200, 404, 404, 404, 404, 404, 404, 404])
  t.equal((await usedBy(service, team.id)).emails, 0)
})

t.test('email: cancelling doesn’t release quota of a later period', async (t) => {
  const { id: teamId, key } = await makeTeam(service, { plan: 'free' })
  const send = (changes: object) => call('POST', '/v1/emails', { key, body: anEmail({ ...changes }) })
  const { body } = await send({ scheduled_at: ahead(80 * 24 * HOUR) })
  await shiftClock(database, 40 * 24 * 3_600)
  t.teardown(() => runClock(database))
  await send({})
  t.equal((await usedBy(service, teamId)).emails, 1)
  t.equal((await call('POST', `/v1/emails/${body.id}/cancel`, { key })).status, 200)
  t.equal((await usedBy(service, teamId)).emails, 1)
})
