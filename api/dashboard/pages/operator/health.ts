/**
 * Shows the health of the database, the email provider, bounces, WhatsApp and settings. Checks again on each
 * request.
 */

import { rejectedReturnPaths } from '../../../../db/accounts/domains/domains.sql.ts'
import { ownReturnPath } from '../../../../db/accounts/domains/return-path.ts'
import { lastReports } from '../../../../db/delivery/reports/reports.sql.ts'
import { checkFound, requestCheck } from '../../../../db/delivery/senders/check.ts'
import { returnPathCheck } from '../../../../db/delivery/senders/return-path.ts'
import { latestOfKind } from '../../../../db/maintenance/background-jobs/background-jobs.sql.ts'
import { accountEvents } from '../../../../db/messages/whatsapp/account-events.sql.ts'
import { allNumbers } from '../../../../db/messages/whatsapp/numbers.sql.ts'
import type { Tx } from '../../../../db/postgres/pool.ts'
import { blamedSenders } from '../../../../db/stats/fleet/sender-reports.sql.ts'
import { isUuid } from '../../../../db/validation/strings.ts'
import { status, text, time } from '../../components/cell.ts'
import type { Section } from '../../components/section.ts'
import { action, button, compact, factsOf, get, tableOf } from '../../server/builders.ts'
import type { PageDeps } from '../../server/deps.ts'
import { redirect, show } from '../../server/page.ts'
import { describeReview } from '../background-job.ts'
import { type DatabaseState, databaseAlerts, databaseState, SAFETY_SETTINGS } from './database-state.ts'
import { numbersTable } from './whatsapp-numbers.ts'

const PATH = '/operator/health'
const MAX_REJECTED_SHOWN = 50

function databaseFacts({ version, at, now, drift_s, settings, off }: DatabaseState): Section {
  const safe = SAFETY_SETTINGS.map((name) => [
    name,
    status(settings[name], { tone: off.includes(name) ? 'bad' : 'good' }),
  ])
  return factsOf(
    {
      PostgreSQL: text(version),
      'Its clock': time(at, now),
      'Difference to this process’s clock': text(`${drift_s} s`),
      ...Object.fromEntries(safe),
    },
    { title: 'Database' },
  )
}

/** Shows the result of a worker's check of the email provider. */
async function checkSection(tx: Tx, id: string | null): Promise<Section> {
  const found = id !== null && isUuid(id) ? await checkFound(tx, id) : null
  const unknown = text(id === null ? 'not checked yet' : 'no worker has checked it yet')
  const answer = found?.fault
    ? status('rejects email', { tone: 'bad', detail: found.fault })
    : status('accepts email', { tone: 'good' })
  return factsOf(found ? { [found.sender]: answer } : { Provider: unknown }, {
    title: 'Relay',
    id: 'check',
    live: id !== null && !found,
  })
}

/** Lists senders that bounces blame for their set-up. */
async function blamedSection(tx: Tx, now: Date): Promise<Section[]> {
  const senders = await blamedSenders(tx)
  if (senders.length === 0) return []
  return [
    tableOf(
      senders,
      ({ sender, last_at, response }) => ({
        Sender: text(sender, { code: true }),
        'Last bounce': time(last_at, now),
        Response: text(response),
      }),
      {
        title: 'Senders that bounces blame',
        note: 'Servers behind the relay rejected emails to at least three domains because of our own set-up. Contacts aren’t affected. Check the login, the sender addresses and the limits at the relay.',
        empty: '',
        wrap: ['Response'],
      },
    ),
  ]
}

/** Shows the result of re-evaluating suppressions from before the upgrade. */
async function judgedFacts(tx: Tx, now: Date): Promise<Section | false> {
  const job = await latestOfKind(tx, 'suppression.judge')
  return (
    job !== null &&
    factsOf(
      {
        Checked: text(describeReview(job.result)),
        Finished: job.finished_at === null ? text('not yet') : time(job.finished_at, now),
      },
      { title: 'Suppressions from before the upgrade' },
    )
  )
}

/** Shows Meta's latest reports about WhatsApp accounts and numbers. */
async function whatsappSection(tx: Tx, now: Date): Promise<Section[]> {
  const numbers = await allNumbers(tx)
  const events = await accountEvents(tx)
  return compact<Section>([
    numbers.length > 0 && numbersTable(numbers, now),
    events.length > 0 &&
      tableOf(
        events,
        ({ account_id, number, name, field, detail, occurred_at }) => ({
          Account: text(account_id),
          Number: text(number === '' ? '' : `+${number}`, { detail: name ?? undefined }),
          Event: text(field),
          Detail: text(detail),
          When: time(occurred_at, now),
        }),
        { title: 'WhatsApp accounts and numbers', grow: ['Detail'], empty: '' },
      ),
  ])
}

/** Shows the state of RETURN_PATH_DOMAIN, and the return paths of teams that the relay rejects. */
async function returnPathSections(
  { database, returnDomain, ...looks }: PageDeps,
  now: Date,
): Promise<Section[]> {
  const { domain, mx, spf, last_report_at, fault } = await returnPathCheck(database, returnDomain, looks)
  const rejected = await rejectedReturnPaths(database, MAX_REJECTED_SHOWN)
  return compact<Section>([
    factsOf(
      {
        RETURN_PATH_DOMAIN:
          domain === null ? status('not set', { tone: 'warn' }) : text(domain, { code: true }),
        MX:
          domain !== null &&
          (mx === null ? status('missing', { tone: 'bad' }) : text(mx.join(', '), { code: true })),
        SPF:
          domain !== null && (spf === null ? status('missing', { tone: 'bad' }) : text(spf, { code: true })),
        'Last report': time(last_report_at, now, 'none yet'),
        Problem: fault !== null && text(fault),
      },
      { title: 'Return path' },
    ),
    ...(rejected.length === 0
      ? []
      : [
          tableOf(
            rejected,
            ({ team_id, name, at, response }) => ({
              Domain: text(ownReturnPath(name), { href: `/teams/${team_id}/domains/${name}` }),
              Rejected: time(at, now),
              Response: text(response),
            }),
            {
              title: 'Return paths that the relay rejects',
              note: 'Their emails go out with RETURN_PATH_DOMAIN. Have the relay accept the domain as a sender, then turn its return path on again.',
              empty: '',
              wrap: ['Response'],
            },
          ),
        ]),
  ])
}

const check = action('operator', `${PATH}/check`, async (by) => {
  const id = await requestCheck(by)
  return redirect(`${PATH}?check=${id}`)
})

const health = get('operator', PATH, async ({ now, query }, deps) => {
  const { database, switches } = deps
  const state = await databaseState(database)
  const last = await lastReports(database)
  const heard = last.map(({ provider, last_at }) => [provider, time(last_at, now)])
  const settings = switches.map(({ name, isSet }) => [
    name,
    status(isSet ? 'set' : 'not set', { tone: isSet ? 'good' : 'plain' }),
  ])
  return show({
    title: 'Health',
    back: { href: '/operator', label: 'Operator' },
    actions: {
      forms: [
        { action: PATH, method: 'get', fields: [], submit: 'Refresh', tone: 'quiet' },
        button(`${PATH}/check`, 'Check email now', { tone: 'quiet' }),
      ],
    },
    sections: [
      { kind: 'alerts', alerts: databaseAlerts(state), calm: 'No problems with the database.' },
      await checkSection(database, query.get('check')),
      ...(await blamedSection(database, now)),
      ...(await whatsappSection(database, now)),
      ...(await returnPathSections(deps, now)),
    ],
    aside: compact([
      await judgedFacts(database, now),
      databaseFacts(state),
      factsOf(Object.fromEntries(heard), { title: 'Last delivery reports' }),
      factsOf(Object.fromEntries(settings), { title: 'Settings of this web process' }),
    ]),
  })
})

export const healthPages = [health, check]
