/** Forwards mail to postmaster@ and abuse@ to the operator, as an attachment. At most 20 an hour in total. */
import { createHash } from 'node:crypto'
import { teamOfDomain } from '../accounts/domains/domains.sql.ts'
import { withLoaded } from '../content/files/load.ts'
import type { Tx } from '../postgres/pool.ts'
import { serviceTime } from '../postgres/time.sql.ts'
import { parseAddress, parseMailbox } from '../validation/address.ts'
import { type AcceptDeps, acceptEmails, idsOf } from './emails/accept.ts'
import { emailItem } from './emails/item.ts'
import type { Notices } from './notice.ts'
import { lockOperatorMail, timesOfKeys } from './operator-mail.sql.ts'

export type OperatorMail = { subject: string; body: Buffer }

const MAX_AN_HOUR = 20
const HOUR_MS = 3_600_000

/** The keys of an hour's mails. A key that is used stays, so that no other worker uses it again. */
const keysOf = (hour: number): string[] =>
  Array.from({ length: MAX_AN_HOUR }, (_, at) => `operator-mail:${hour}:${at}`)

/** Returns keys for as many emails as can still be forwarded. The caller's transaction must have the lock. */
async function freeKeys(tx: Tx, teamId: string, now: Date): Promise<string[]> {
  const hour = Math.floor(now.getTime() / HOUR_MS)
  const times = await timesOfKeys(tx, teamId, [...keysOf(hour - 1), ...keysOf(hour)])
  const recent = times.filter(({ created_at }) => now.getTime() - Date.parse(created_at) < HOUR_MS)
  const used = new Set(times.map(({ key }) => key))
  return keysOf(hour)
    .filter((key) => !used.has(key))
    .slice(0, MAX_AN_HOUR - recent.length)
}

/** @returns how many it forwarded. None without OPERATOR_EMAIL or a verified DASHBOARD_FROM. @throws RequestError */
export async function forwardToOperator(
  deps: AcceptDeps,
  mails: readonly OperatorMail[],
  { from: sender, operator }: Notices,
): Promise<number> {
  const { tx } = deps
  const [from, to] = [parseMailbox(sender ?? ''), parseAddress(operator ?? '')]
  const teamId = from && to && (await teamOfDomain(tx, from.domain))
  if (!from || !to || !teamId) return 0
  await lockOperatorMail(tx)
  const keys = await freeKeys(tx, teamId, await serviceTime(tx))
  const sent = mails
    .slice(0, keys.length)
    .map((mail, at) => ({
      ...mail,
      ...{ key: keys[at] ?? '', sha256: createHash('sha256').update(mail.body).digest('hex') },
    }))
  if (sent.length === 0) return 0
  const contents = new Map(sent.map(({ sha256, body }) => [sha256, body]))
  return withLoaded(tx, teamId, { contents, uses: [...contents.keys()] }, async (loaded) => {
    const items = sent.map(({ subject, body, key, sha256 }) =>
      emailItem({
        ...{ from, to: [to.address], subject: subject || '(no subject)', idempotency_key: key },
        html: '<p>The attached email was sent to postmaster@ or abuse@ of this service.</p>',
        text: 'The attached email was sent to postmaster@ or abuse@ of this service.',
        attachments: [
          {
            ...{ filename: 'email.eml', content_type: 'message/rfc822', content_id: null, sha256 },
            ...{ size: body.length, loaded: loaded.get(sha256) ?? null },
          },
        ],
      }),
    )
    const sender = { team_id: teamId, domain: null, rated: false, internal: true } as const
    return idsOf(await acceptEmails(deps, sender, items)).length
  })
}
