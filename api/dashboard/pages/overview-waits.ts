/** Alerts on a team's overview for messages that failed or wait for too long. */

import { CHANNELS } from '../../../db/channels/channels.sql.ts'
import { EMAIL } from '../../../db/channels/email.sql.ts'
import { WHATSAPP } from '../../../db/channels/whatsapp.sql.ts'
import { longWaits } from '../../../db/delivery/waiting.sql.ts'
import { plural } from '../../../db/plural.ts'
import { headed, type Tone } from '../components/cell.ts'
import type { Alert } from '../components/section.ts'
import type { PageDeps } from '../server/deps.ts'
import { type TeamRequest, teamPath } from '../server/page.ts'
import { allEmails } from './emails-filter.ts'
import { defaultNumberAlert } from './whatsapp-default-number.ts'

/** Messages that wait longer cause an alert. */
const LONG_WAIT_MS = 5 * 60_000
/** Maximum count of waiting messages, because counting a large backlog is slow. */
export const MAX_COUNTED = 1_000

type WaitWords = { tone: Tone; status: 'failed' | 'queued'; words: string }
const FAILED: WaitWords = { tone: 'bad', status: 'failed', words: 'failed, with no attempts left' }
const LATE: WaitWords = { tone: 'warn', status: 'queued', words: 'waiting for longer than 5 minutes' }

/** Returns alerts for failed messages and long waits of each channel, with the most common response. */
export async function waitAlerts(request: TeamRequest, deps: PageDeps): Promise<Alert[]> {
  const { team, person, now } = request
  const { database } = deps
  const alerts: Alert[] = []
  for (const channel of CHANNELS) {
    const before = new Date(now.getTime() - LONG_WAIT_MS)
    const wanted = { channel, before, most: MAX_COUNTED + 1, operator: person.operator }
    const { waiting, given_up, reason } = await longWaits(database, team.id, wanted)
    const atLeast = waiting > MAX_COUNTED ? 'at least ' : ''
    const list = channel === EMAIL ? allEmails(team) : `${teamPath(team, channel.path)}?`
    const alert = (count: number, { tone, status, words }: WaitWords): Alert => ({
      tone,
      title: headed(`${atLeast}${plural(Math.min(count, MAX_COUNTED), channel.noun)} ${words}`),
      text: reason ?? undefined,
      link: { href: `${list}&status=${status}`.replace('?&', '?'), label: `Show ${channel.noun}s` },
    })
    const late = waiting - given_up
    if (given_up > 0) alerts.push(alert(given_up, FAILED))
    if (late === 0) continue
    const cause = channel === WHATSAPP && (await defaultNumberAlert(request, deps))
    const { link } = alert(late, LATE)
    alerts.push(cause && cause.tone === 'bad' ? { ...cause, link } : alert(late, LATE))
  }
  return alerts
}
