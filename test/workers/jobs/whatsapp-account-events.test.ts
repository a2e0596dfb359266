/** Meta's updates about accounts and numbers, as operators see them. Real hook, real queue, real worker. */
import { sql } from 'slonik'
import { accountEvents } from '../../../db/messages/whatsapp/account-events.sql.ts'
import { numberByName } from '../../../db/messages/whatsapp/numbers.sql.ts'
import { shows, signedIn } from '../../support/dashboard.ts'
import { world } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { type Json, postUpdates } from '../../support/whatsapp.ts'
import { makeDefaultNumber, makeNumber } from '../../support/whatsapp-numbers.ts'
import { startWorker, until } from '../../support/worker.ts'

t.test('the Health page shows the latest event of each kind', async (t) => {
  const { service, database } = await world(t)
  await startWorker(t, service)
  const post = async (field: string, value: Json, time: number, id = '200') => {
    const entry = [{ id, time, changes: [{ field, value }] }]
    const reply = await postUpdates(service, { object: 'whatsapp_business_account', entry })
    t.equal(reply.status, 200)
  }
  await makeNumber(service, { name: 'acme', phone_number_id: '201', account_id: '200', token: 'a-token' })
  await database.query(sql.unsafe`update whatsapp_numbers set display_phone_number = '+1 555-555-0100'`)
  const time = Math.floor(Date.now() / 1_000) - 60
  const quality = { display_phone_number: '15555550100', event: 'FLAGGED', current_limit: 'TIER_10K' }
  await post('phone_number_quality_update', quality, time)
  await post('phone_number_quality_update', { ...quality, event: 'ONBOARDING' }, time - 60)
  const restriction = { restriction_type: 'RESTRICTED_BIZ_INITIATED_MESSAGING', expiration: 1_790_000_000 }
  await post('account_update', { event: 'ACCOUNT_RESTRICTION', restriction_info: [restriction] }, time + 1)
  await until('both are stored', async () => (await accountEvents(database)).length === 2)
  t.match(await accountEvents(database), [
    {
      account_id: '200',
      field: 'account_update',
      number: /^$/,
      detail: /ACCOUNT_RESTRICTION.*RESTRICTED_BIZ/,
    },
    { field: 'phone_number_quality_update', number: '15555550100', name: 'acme', detail: /event: FLAGGED/ },
  ])
  t.match(await numberByName(database, 'acme'), { messaging_limit: 'TIER_10K' })
  await makeNumber(service, { name: 'acme-2', phone_number_id: '202', account_id: '200', token: 'a-token' })
  await makeDefaultNumber(service, { phone_number_id: '101', account_id: '100' })
  await post('phone_number_quality_update', { ...quality, current_limit: 'TIER_1K' }, time + 2, '300')
  await post('phone_number_quality_update', { ...quality, current_limit: 'TIER_250' }, time + 2, '100')
  const unknown = { display_phone_number: '15555550199', event: 'FLAGGED', current_limit: 'TIER_1K' }
  await post('phone_number_quality_update', unknown, time + 3, '100')
  await until('the last is stored', async () => (await accountEvents(database)).length === 4)
  t.match((await accountEvents(database))[0], { account_id: '100', number: '15555550199', name: 'default' })
  t.match(await numberByName(database, 'acme'), { messaging_limit: 'TIER_10K' }, 'of another account')
  t.match(await numberByName(database, 'acme-2'), { messaging_limit: null })
  const operator = await signedIn(service, { operator: true })
  shows(t, await operator.get('/operator/health'), /\+15555550100 acme .*FLAGGED/)
})

t.test('each kind of update is stored with its members', async (t) => {
  const { service, database } = await world(t)
  await startWorker(t, service)
  const display_phone_number = '15555550100'
  const updates: [field: string, value: Json, detail: RegExp][] = [
    ['phone_number_quality_update', { display_phone_number, event: 'DOWNGRADE' }, /event: DOWNGRADE/],
    [
      'phone_number_name_update',
      { display_phone_number, decision: 'REJECTED', requested_verified_name: 'Acme' },
      /decision: REJECTED, requested_verified_name: Acme/,
    ],
    [
      'account_update',
      { event: 'DISABLED_UPDATE', ban_info: { waba_ban_state: 'DISABLE' } },
      /DISABLED_UPDATE/,
    ],
    [
      'account_alerts',
      { entity_type: 'BUSINESS', alert_info: { alert_severity: 'WARNING', alert_type: 'OBA_APPROVED' } },
      /alert_severity: WARNING, alert_type: OBA_APPROVED/,
    ],
    [
      'business_capability_update',
      { max_phone_numbers_per_business: 25 },
      /max_phone_numbers_per_business: 25/,
    ],
  ]
  const changes = updates.map(([field, value]) => ({ field, value }))
  const reply = await postUpdates(service, { entry: [{ id: '200', time: 1_790_000_000, changes }] })
  t.equal(reply.status, 200)
  await until('all are stored', async () => (await accountEvents(database)).length === updates.length)
  const stored = new Map((await accountEvents(database)).map(({ field, detail }) => [field, detail]))
  for (const [field, , detail] of updates) t.match(stored.get(field), detail)
})
