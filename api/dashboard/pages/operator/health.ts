/** The health of the database, the relay, bounces, WhatsApp and settings as checklists, checked on each request. */

import { rejectedReturnPaths } from '../../../../db/accounts/domains/domains.sql.ts'
import { ownReturnPath } from '../../../../db/accounts/domains/return-path.ts'
import { deliveryOfSender } from '../../../../db/channels/channels.sql.ts'
import { EMAIL } from '../../../../db/channels/email.sql.ts'
import { countParked, lastReports } from '../../../../db/delivery/reports/reports.sql.ts'
import { checkFound, requestCheck } from '../../../../db/delivery/senders/check.ts'
import { returnPathCheck } from '../../../../db/delivery/senders/return-path.ts'
import { listSenders } from '../../../../db/delivery/senders/show.ts'
import { latestOfKind } from '../../../../db/maintenance/background-jobs/background-jobs.sql.ts'
import { accountEvents } from '../../../../db/messages/whatsapp/account-events.sql.ts'
import { allNumbers, defaultNumber } from '../../../../db/messages/whatsapp/numbers.sql.ts'
import type { Tx } from '../../../../db/postgres/pool.ts'
import { liveProcesses, type ProcessRow } from '../../../../db/stats/fleet/fleet.sql.ts'
import { LISTED_FOR_S } from '../../../../db/stats/fleet/fleet.ts'
import { misconfiguredSenders } from '../../../../db/stats/fleet/sender-reports.sql.ts'
import { isUuid } from '../../../../db/validation/strings.ts'
import { text, time } from '../../components/cell.ts'
import type { Check, Section } from '../../components/section.ts'
import { action, buildTable, button, compact, get } from '../../server/builders.ts'
import { redirect, show } from '../../server/page.ts'
import { describeReview } from '../background-job.ts'
import { isPaused } from '../stopped.ts'
import { databaseState, faultAlerts, riskAlerts } from './database-state.ts'
import {
  buildChecklist,
  databaseChecks,
  MAX_PARKED,
  processChecks,
  relayCheck,
  reportChecks,
  returnPathChecks,
  settingChecks,
} from './health-checks.ts'
import { numberAlerts, numbersTable, readNumberFacts } from './whatsapp-number-table.ts'
import { isLive, workerAlerts } from './workers.ts'

const PATH = '/operator/health'
const MAX_REJECTED_SHOWN = 50

/** Lists senders whose set-up caused bounces. */
const blamedTable = (senders: Awaited<ReturnType<typeof misconfiguredSenders>>, now: Date): Section =>
  buildTable(
    senders,
    ({ sender, last_at, response }) => ({
      Sender: text(sender, { code: true }),
      'Last bounce': time(last_at, now),
      Response: text(response),
    }),
    {
      title: 'Misconfigured senders',
      note: 'The servers of three or more domains rejected emails because of your configuration. Contacts aren’t affected. Check the login, the sender addresses and the limits at the relay.',
      empty: '',
      wrap: ['Response'],
    },
  )

/** Returns the result of re-evaluating suppressions from before the upgrade, if that was necessary. */
async function judgedCheck(tx: Tx, now: Date): Promise<Check | false> {
  const job = await latestOfKind(tx, 'suppression.judge')
  return (
    job !== null && {
      label: 'Suppressions from before the upgrade',
      detail: job.fault ?? `Checked: ${describeReview(job.result)}`,
      cell: time(job.finished_at, now, 'not finished'),
      tone: job.fault !== null ? 'bad' : job.finished_at === null ? 'plain' : 'good',
    }
  )
}

type Numbers = Awaited<ReturnType<typeof loadNumbers>>

/** Returns all numbers with their state, the default one first. */
async function loadNumbers(tx: Tx, now: Date) {
  const own = await allNumbers(tx)
  const facts = await readNumberFacts(tx, now)
  return { own, facts, numbers: compact([await defaultNumber(tx), ...own]) }
}

/** Shows Meta's latest reports about WhatsApp accounts and numbers. */
async function whatsappSection(tx: Tx, { numbers, facts }: Numbers, now: Date): Promise<Section[]> {
  const events = await accountEvents(tx)
  return compact<Section>([
    numbers.length > 0 && numbersTable(numbers, facts, 'WhatsApp numbers'),
    events.length > 0 &&
      buildTable(
        events,
        ({ account_id, number, name, field, detail, occurred_at }) => ({
          Account: text(account_id),
          Number: text(number === '' ? '' : `+${number}`, { detail: name ?? undefined }),
          Event: text(field),
          Detail: text(detail),
          When: time(occurred_at, now),
        }),
        { title: 'Events from Meta', grow: ['Detail'], empty: '' },
      ),
  ])
}

/** Lists return paths of teams with a rejection by the relay. */
const rejectedTable = (rejected: Awaited<ReturnType<typeof rejectedReturnPaths>>, now: Date): Section =>
  buildTable(
    rejected,
    ({ team_id, name, at, response }) => ({
      Domain: text(ownReturnPath(name), { href: `/teams/${team_id}/domains/${name}` }),
      Rejected: time(at, now),
      Response: text(response),
    }),
    {
      title: 'Return paths that the relay rejects',
      note: 'Emails that would use them go out with RETURN_PATH_DOMAIN. Allow each listed domain as an envelope sender at the relay, then turn the domain’s own return path off and on again.',
      empty: '',
      wrap: ['Response'],
    },
  )

const check = action('operator', `${PATH}/check`, async (by) => {
  const id = await requestCheck(by)
  return redirect(`${PATH}?check=${id}`)
})

/** Returns the result of the requested check, null until a worker has done it. Undefined without a request. */
const relayFound = async (tx: Tx, id: string | null) =>
  id === null ? undefined : isUuid(id) ? checkFound(tx, id) : null

const pausedRelay = async (tx: Tx) =>
  (await listSenders(tx)).find(
    (sender) => isPaused(sender) && deliveryOfSender(sender.key, sender.name).channel.name === EMAIL.name,
  )

const usedRelay = (processes: readonly ProcessRow[]): string | undefined =>
  processes.filter(isLive).flatMap(({ senders }) => senders['deliver-email'] ?? [])[0]

const reportsSection = async (tx: Tx, now: Date): Promise<Section> =>
  buildChecklist(
    'Delivery reports',
    reportChecks(await lastReports(tx), await countParked(tx, MAX_PARKED), now),
    { id: 'reports', live: true, next: { href: '/operator/reports', label: 'All parked reports' } },
  )

const health = get('operator', PATH, async ({ now, query }, deps) => {
  const { database, switches, returnDomain, recent } = deps
  const state = await databaseState(database)
  const processes = await liveProcesses(database, LISTED_FOR_S)
  const path = await returnPathCheck(database, returnDomain, recent)
  const numbers = await loadNumbers(database, now)
  const found = await relayFound(database, query.get('check'))
  const relay = relayCheck(found, await pausedRelay(database), usedRelay(processes))
  const blamed = await misconfiguredSenders(database)
  const rejected = await rejectedReturnPaths(database, MAX_REJECTED_SHOWN)
  return show({
    title: 'Health',
    actions: { forms: [button(`${PATH}/check`, 'Check the relay', { tone: 'quiet' })] },
    above: [
      {
        kind: 'alerts',
        id: 'problems',
        live: true,
        alerts: compact([
          ...faultAlerts(state),
          ...workerAlerts(processes, now),
          ...riskAlerts(state),
          ...numberAlerts(numbers.own, numbers.facts),
          found?.fault && { tone: 'bad', title: `${found.sender} failed the check`, text: found.fault },
          path.domain !== null &&
            path.fault !== null && {
              tone: 'warn',
              title: 'Bounces may not reach us',
              text: `${path.fault}.`,
            },
        ]),
        calm: 'No problems with the database, the workers, the numbers or the return path.',
      },
    ],
    even: 'Database and settings',
    sections: [
      buildChecklist('Processes', processChecks(processes, now), {
        id: 'processes',
        live: true,
        next: { href: '/operator/queues', label: 'All queues' },
      }),
      buildChecklist('Email', [relay, ...returnPathChecks(path, now)], { id: 'check', live: true }),
      await reportsSection(database, now),
    ],
    aside: [
      buildChecklist('Database', compact([...databaseChecks(state), await judgedCheck(database, now)]), {
        id: 'database',
        live: true,
      }),
      buildChecklist('Settings of this web process', settingChecks(switches)),
    ],
    below: compact([
      blamed.length > 0 && blamedTable(blamed, now),
      rejected.length > 0 && rejectedTable(rejected, now),
      await whatsappSection(database, numbers, now),
    ]),
  })
})

export const healthPages = [health, check]
