/** The overview of a team: alerts, quotas, and the last 30 days. */

import { domainsOfTeam } from '../../../db/accounts/domains/domains.sql.ts'
import { planName } from '../../../db/accounts/plans/plans.sql.ts'
import { readBulkPause } from '../../../db/accounts/teams/reputation.sql.ts'
import { showTeam } from '../../../db/accounts/teams/view.ts'
import type { Channel } from '../../../db/channels/channel.sql.ts'
import { CHANNEL_QUEUES, CHANNELS, sendsFor } from '../../../db/channels/channels.sql.ts'
import { EMAIL } from '../../../db/channels/email.sql.ts'
import type { ShownSender } from '../../../db/delivery/senders/show.ts'
import { stoppedBroadcasts } from '../../../db/messages/broadcasts/auto-pause.sql.ts'
import { resumeBulk } from '../../../db/messages/bulk-pause.ts'
import { bouncesOfTeam } from '../../../db/messages/emails/bounces.sql.ts'
import { type EndpointRow, endpointsOfTeam } from '../../../db/messages/webhooks/endpoints.sql.ts'
import { BY_HAND } from '../../../db/messages/webhooks/endpoints.ts'
import { pausedQueues, type QueuePause, RESTORED } from '../../../db/queue/pauses.sql.ts'
import { dayBefore } from '../../../db/stats/daily/fold.ts'
import { figuresSince, type StatRow } from '../../../db/stats/daily/stats.sql.ts'
import { bounceTiles, MAX_BOUNCES } from '../components/bounces.ts'
import { byteWords, dayWords, duration, time } from '../components/cell.ts'
import { percent } from '../components/percent.ts'
import type { Actions, Alert, Link, Section } from '../components/section.ts'
import { ALARMING_SHARE, pickTone, shareWords, toRateCounts } from '../components/shares.ts'
import { pausedDelivery, pausedQueue, RESTORED_COPY, SUSPENDED_TEAM } from '../components/timeline.ts'
import { usageTile } from '../components/usage.ts'
import { periodTiles } from '../components/week.ts'
import { action, button, compact, get } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { type PageTeam, redirect, show, type TeamRequest, teamPath } from '../server/page.ts'
import { allEmails } from './emails-filter.ts'
import { firstSteps, nextStep } from './first-steps.ts'
import { aheadSection } from './overview-ahead.ts'
import { CHART_DAYS, chartSections, many } from './overview-charts.ts'
import { MAX_COUNTED, waitAlerts } from './overview-waits.ts'
import {
  bulkPausedAlert,
  foldAlerts,
  goesOutAlerts,
  groupAlerts,
  isPaused,
  loadSenders,
  RESUME_BULK,
  stoppedBroadcastAlerts,
} from './stopped.ts'
import { testEmailForm } from './test-email.ts'

function shareAlerts(figures: readonly StatRow[], emails: string): Alert[] {
  const sums = toRateCounts(figures)
  const alert = (status: 'bounced' | 'complained', words: string): Alert | false =>
    pickTone(sums, status) === 'bad' && {
      tone: 'bad',
      title: `${shareWords(sums, status)} of the last 30 days’ emails ${words}`,
      text: `Mailbox providers may reject or filter your email above ${percent(ALARMING_SHARE[status])}.`,
      link: { href: `${emails}&status=${status}`, label: 'Show emails' },
    }
  return compact([alert('bounced', 'bounced'), alert('complained', 'were reported as spam')])
}

const listQueues = ({ test }: PageTeam): readonly Channel[] =>
  CHANNEL_QUEUES.filter((channel) => channel.test === test)

/** Returns alerts for paused senders. Only operators see responses, which can name another team's recipient. */
function senderAlerts(senders: readonly ShownSender[], { person, team, now }: TeamRequest): Alert[] {
  if (person.operator) return goesOutAlerts(senders, now)
  const paused = senders.filter(isPaused)
  return listQueues(team)
    .filter((channel) => paused.some(({ key }) => sendsFor(channel, key)))
    .map(({ title }) => pausedDelivery(`${title} messages are`))
}

async function broadcastAlerts({ team }: TeamRequest, { database }: PageDeps): Promise<readonly Alert[]> {
  const alerts = stoppedBroadcastAlerts(await stoppedBroadcasts(database, team.id, MAX_COUNTED), {
    canResume: team.role !== 'viewer',
  })
  return groupAlerts(alerts, `${alerts.length} broadcasts were paused automatically`)
}

async function webhookAlerts({ team, now }: TeamRequest, { database }: PageDeps) {
  const link = ({ id }: EndpointRow) => ({ href: teamPath(team, 'webhooks', id), label: 'Show webhook' })
  const endpoints = await endpointsOfTeam(database, team.id)
  return {
    disabled: endpoints.flatMap((endpoint): Alert[] => {
      const { name, state, state_reason: text } = endpoint
      if (state !== 'disabled' || text === BY_HAND) return []
      const title = `The webhook ${name} was disabled`
      return [{ tone: 'bad', title, text: text ?? undefined, link: link(endpoint) }]
    }),
    failing: endpoints.flatMap((endpoint): Alert[] => {
      const { name, state, failing_since: since } = endpoint
      if (state === 'disabled' || since === null) return []
      const failing = duration((now.getTime() - Date.parse(since)) / 1_000)
      const title = `All attempts of the webhook ${name} have failed for ${failing}`
      return [{ tone: 'warn', title, link: link(endpoint) }]
    }),
  }
}

/** Returns alerts for paused delivery queues, or a single one if the database is a copy. */
function queueAlerts(paused: ReadonlyMap<string, QueuePause>, { person, team }: TeamRequest): Alert[] {
  const all = listQueues(team)
  const own = all.flatMap(({ job, title }) => {
    const pause = paused.get(job)
    return pause ? [{ title, reason: pause.reason }] : []
  })
  const isCopy = own.length === all.length && own.some(({ reason }) => reason === RESTORED)
  const alerts = isCopy ? [RESTORED_COPY] : own.map(({ title, reason }) => pausedQueue(title, reason))
  const link = { href: '/operator/queues', label: 'Show queues' }
  return person.operator ? alerts.map((alert) => ({ ...alert, link })) : alerts
}

/** Returns all alerts. Those that need manual action come first. */
async function collectAlerts(
  request: TeamRequest,
  deps: PageDeps,
  figures: readonly StatRow[],
): Promise<Alert[]> {
  const { team, now } = request
  const { database } = deps
  const senders = await loadSenders(team, database)
  const bulk = await readBulkPause(database, team.id)
  const webhooks = await webhookAlerts(request, deps)
  const domains = await domainsOfTeam(database, team.id)
  const pending = domains.filter(({ status }) => status === 'pending')
  const failing = domains.filter(({ failing_since }) => failing_since !== null)
  return compact([
    team.suspended && SUSPENDED_TEAM,
    bulk && bulkPausedAlert(bulk, now),
    ...(await broadcastAlerts(request, deps)),
    ...webhooks.disabled,
    ...groupAlerts(
      failing.map(
        ({ name, missing_since }): Alert => ({
          tone: 'bad',
          title: `The DKIM record of ${name} has been missing or different since`,
          at: time(missing_since, now),
          text: 'Email from it is still sent, but may be rejected or marked as spam.',
          link: { href: teamPath(team, 'domains', name), label: 'Show DNS records' },
        }),
      ),
      `The DKIM records of ${failing.length} domains are missing or different`,
    ),
    ...queueAlerts(await pausedQueues(database), request),
    ...groupAlerts(
      senderAlerts(senders, request),
      `Nothing goes out through ${senders.filter(isPaused).length} senders`,
    ),
    ...(await waitAlerts(request, deps)),
    ...webhooks.failing,
    ...shareAlerts(figures, allEmails(team)),
    ...groupAlerts(
      pending.map(
        ({ name }): Alert => ({
          tone: 'warn',
          title: `The domain ${name} is not verified yet`,
          link: { href: teamPath(team, 'domains', name), label: 'Show DNS records' },
        }),
      ),
      `${pending.length} domains are not verified yet`,
    ),
  ])
}

const describeCalm = ({ test }: PageTeam, isNew: boolean): string => {
  if (test) return 'Nothing needs attention. This is a test team, so nothing is delivered.'
  return isNew ? 'Nothing needs attention yet.' : 'Nothing needs attention. Everything is going out.'
}

async function quotaSection(
  { team, now }: TeamRequest,
  shown: Awaited<ReturnType<typeof showTeam>>,
  plan: string,
): Promise<Section> {
  const { limits, used, period } = shown
  const tile = (label: string, of: keyof typeof used, how: Parameters<typeof usageTile>[3]) =>
    usageTile(label, used[of], limits[of], how)
  const left = duration((Date.parse(period.end) - now.getTime()) / 1_000, Math.round)
  return {
    kind: 'tiles',
    title: 'This period',
    note: `Plan ${plan}. Resets ${dayWords(period.end)}, in ${left}. Messages count when they are accepted.`,
    tiles: [
      ...CHANNELS.map((channel) =>
        tile(many(channel), channel.quota.name, { href: teamPath(team, channel.path) }),
      ),
      tile('Contacts', 'contacts', { href: teamPath(team, 'contacts') }),
      tile('Attachments', 'storage', { words: byteWords }),
    ],
  }
}

/** Returns the main action: resuming bulk email, the next of the first steps, or a new broadcast. */
function nextActs(
  { team }: TeamRequest,
  { isPaused, isNew, step }: { isPaused: boolean; isNew: boolean; step: Link | undefined },
): Actions {
  if (isPaused && team.role === 'owner')
    return { forms: [button(teamPath(team, 'resume-bulk'), RESUME_BULK)] }
  if (isNew && step) return { links: [{ ...step, main: true }] }
  if (team.role === 'viewer' || isNew) return {}
  return { links: [{ href: teamPath(team, 'broadcasts', 'new'), label: 'Create a broadcast', main: true }] }
}

const overview = get('viewer', '/teams/:team', async (request, deps) => {
  const { team, now } = request
  const shown = await showTeam(deps.database, team.id)
  // Twice the days, for the comparison with the period before.
  const since = dayBefore(now, 2 * CHART_DAYS - 1)
  const figures = new Map<Channel, readonly StatRow[]>()
  for (const channel of CHANNELS)
    figures.set(channel, await figuresSince(deps.database, team.id, channel, since))
  const start = dayBefore(now, CHART_DAYS - 1)
  const emails = figures.get(EMAIL) ?? []
  const recent = emails.filter(({ day }) => day >= start.toISOString().slice(0, 10))
  const isNew = [...figures.values()].every((own) => own.length === 0)
  const steps = await firstSteps(request, deps)
  const next = { isPaused: shown.bulk_paused !== null, isNew, step: nextStep(request, steps) }
  const quota = await quotaSection(request, shown, await planName(deps.database, shown.plan))
  const tiles: Section = {
    kind: 'tiles',
    id: 'counts',
    tiles: periodTiles(emails, { today: dayBefore(now, 0), days: CHART_DAYS }, allEmails(team)),
  }
  return show({
    title: 'Overview',
    actions: nextActs(request, next),
    above: compact<Section>([
      {
        kind: 'alerts',
        id: 'needs',
        live: true,
        title: 'Needs attention',
        alerts: foldAlerts(await collectAlerts(request, deps, recent)),
        calm: describeCalm(team, isNew),
      },
      ...(await aheadSection(request, deps)),
      !isNew && steps,
    ]),
    sections: compact([
      isNew && steps,
      // A new team's viewers have no steps.
      isNew && steps.length === 0 && quota,
      !isNew && [tiles, ...(await chartSections(request, deps, figures))],
      ...(await testEmailForm(request, deps.database)),
    ]),
    aside: compact([
      (!isNew || steps.length > 0) && quota,
      ...bounceTiles(
        await bouncesOfTeam(deps.database, team.id, { since: start, most: MAX_BOUNCES }),
        'Bounces of the last 30 days.',
      ),
    ]),
  })
})

const resume = action('owner', '/teams/:team/resume-bulk', async (by, { team }) => {
  await resumeBulk(by, team.id)
  return redirect(teamPath(team), 'Broadcasts and batches are resumed.')
})

export const overviewPages = [overview, resume]
