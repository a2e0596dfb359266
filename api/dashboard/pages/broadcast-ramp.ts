/** Shows the ramp-up of a broadcast's sending domain: today's limit, or a button that starts a ramp-up. */
import { domainByName } from '../../../db/accounts/domains/domains.sql.ts'
import { daysLeft, HISTORY_DAYS, HISTORY_EMAILS, USUAL_RAMP } from '../../../db/accounts/domains/ramp.ts'
import { countHistory, readRamp } from '../../../db/accounts/domains/ramps.sql.ts'
import type { BroadcastRow } from '../../../db/messages/broadcasts/broadcasts.sql.ts'
import { domainOf } from '../../../db/messages/broadcasts/draft.ts'
import { type ShownRamp, shownRamp } from '../../../db/messages/broadcasts/ramp.ts'
import type { BroadcastView } from '../../../db/messages/broadcasts/view.ts'
import { plural } from '../../../db/plural.ts'
import { isTooSlow } from '../../../db/postgres/pool.ts'
import { number } from '../components/cell.ts'
import type { Section } from '../components/section.ts'
import { buildAlerts, buildForm, hidden } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { type TeamRequest, teamPath } from '../server/page.ts'

export const rampWords = ({ limit, used }: ShownRamp): string =>
  `${number(used).text} of ${plural(limit, 'broadcast email')} sent today`

/** Explains the ramp-up on the page of its domain. */
export const RAMP_RULE =
  'A new domain has a daily limit for broadcasts. It rises after each day on which at least half of it was used and few emails bounced or were reported as spam.'

/** Describes when the broadcast will be done, if the limit rises every day. */
function describeProgress(ramp: ShownRamp, { audience, stats }: BroadcastView): string {
  const rest = Math.max(0, (audience ?? 0) - stats.skipped - (stats.made - stats.queued))
  const left = Math.max(0, ramp.limit - ramp.used)
  const days = daysLeft(rest, { ...ramp, left })
  return days === 0
    ? 'The broadcast will be done today.'
    : `The broadcast will be done in about ${plural(days, 'day')}.`
}

/** True if the domain has sent enough email before. Null if the count timed out. */
const hasHistory = async ({ database }: PageDeps, name: string): Promise<boolean | null> =>
  countHistory(database, name).then(
    (count) => count >= HISTORY_EMAILS,
    (error) => {
      if (isTooSlow(error)) return null
      throw error
    },
  )

async function offer(name: string, { team }: TeamRequest, deps: PageDeps): Promise<Section[]> {
  const domain = await domainByName(deps.database, team.id, name)
  if (domain?.status !== 'verified' || team.test || (await readRamp(deps.database, name))) return []
  if ((await hasHistory(deps, name)) !== false) return []
  const note = `The mail server accepted fewer than ${number(HISTORY_EMAILS).text} emails from ${name} in ${HISTORY_DAYS} days. Mailbox providers distrust a domain that suddenly sends a lot. With a ramp-up, its broadcasts send at most ${number(USUAL_RAMP.limit).text} emails on the first day. This limit doubles after each day on which at least half of it was used and few emails bounced or were reported as spam.`
  if (team.role !== 'owner') return []
  const label = `Start a ramp-up: ${number(USUAL_RAMP.limit).text} emails on the first day`
  const fields = [hidden('limit', String(USUAL_RAMP.limit))]
  return [
    buildForm(teamPath(team, 'domains', name, 'ramp'), label, {
      title: 'A new sending domain',
      tone: 'quiet',
      note,
      fields,
    }),
  ]
}

export async function rampSections(
  row: BroadcastRow,
  view: BroadcastView,
  request: TeamRequest,
  deps: PageDeps,
): Promise<Section[]> {
  const name = domainOf(row.from_address)
  if (row.state === 'draft' || row.state === 'scheduled') return offer(name, request, deps)
  if (row.state !== 'sending' && row.state !== 'paused') return []
  const ramp = request.team.test ? null : await shownRamp(deps.database, name)
  if (ramp === null) return []
  const title = `Ramp-up of ${name}: ${rampWords(ramp)}`
  return buildAlerts([{ tone: 'busy', title, text: describeProgress(ramp, view) }], {
    id: 'ramp',
    live: true,
  })
}
