/**
 * Opt-outs from a team's marketing messages, and opt-ins. Changes count by their own time, and within one second the
 * opt-out counts. Effective changes are sent as webhooks.
 */
import { type Caller, record } from '../../accounts/audit/record.ts'
import { requireTeam } from '../../accounts/teams/view.ts'
import { publish } from '../../channels/events/webhooks.ts'
import { APPLIED, type EventResult, ignored } from '../../delivery/reports/event-result.ts'
import { RequestError } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import type { Secrets } from '../../process/secrets.ts'
import { normalisePhone } from '../../validation/phone.ts'
import { listForms } from './number-forms.ts'
import {
  messageRepliedTo,
  type OptOutChange,
  optedOut,
  storeOptOuts,
  teamsOfNumber,
  teamsThatWrote,
} from './opt-outs.sql.ts'

/** The code of a failure because the recipient has opted out. */
export const OPTED_OUT_CODE = '131050'
export const OPTED_OUT = 'the recipient opted out of marketing'
const ERASED_PREFIX = 'erased:'

/** A recipient's opt-out or opt-in, sent to a number. */
type ReportedOptOut = {
  /** The sending number. Null if the report doesn't include it. */
  number: string | null
  /** The recipient's digits. */
  from: string
  is_out: boolean
  by: 'user_preferences' | 'text' | 'button'
  /** The id of the message that it replies to. */
  reply_to: string | null
  occurred_at: Date
}

const WROTE_WITHIN_MS = 30 * 24 * 3_600_000

/** Finds the opt-outs of erased numbers. */
type Signatures = Pick<Secrets, 'signatures'>

/** Stores changes, and publishes the effective ones. @param secrets for opt-outs that were kept after an erasure. */
export async function changeOptOuts(
  tx: Tx,
  changes: readonly OptOutChange[],
  secrets?: Signatures,
): Promise<void> {
  if (changes.length === 0) return
  // An opt-in counts for any form of the number.
  const all = changes.flatMap((change) =>
    change.is_out ? [change] : listForms(change.recipient).map((recipient) => ({ ...change, recipient })),
  )
  const numberOf = new Map<string, string>()
  const erased = secrets ? await endsOfErased(tx, all, secrets, numberOf) : []
  const stored = (await storeOptOuts(tx, [...all, ...erased])).map((each) => ({
    ...each,
    recipient: numberOf.get(each.recipient) ?? each.recipient,
  }))
  const effective = stored.filter(({ is_out, was_out, has_listeners }) => is_out !== was_out && has_listeners)
  const news = [...new Map(effective.map((each) => [`${each.team_id}/${each.recipient}`, each])).values()]
  await publish(
    tx,
    news.map(({ team_id, recipient: to, is_out, at, by }) => ({
      ...{ subject: 'other', team_id, id: null, occurred_at: new Date(at), detail: '' },
      kind: is_out ? 'whatsapp.opted_out' : 'whatsapp.opted_in',
      about: { to, at, by },
    })),
  )
}

/** Returns the opt-ins that end opt-outs of erased numbers. @param numberOf gets the number of each. */
async function endsOfErased(
  tx: Tx,
  changes: readonly OptOutChange[],
  secrets: Signatures,
  numberOf: Map<string, string>,
): Promise<OptOutChange[]> {
  const ends = changes
    .filter(({ is_out }) => !is_out)
    .flatMap((change) =>
      erasedNumbers(secrets, change.team_id, change.recipient).map((recipient) => {
        numberOf.set(recipient, change.recipient)
        return { ...change, recipient }
      }),
    )
  if (ends.length === 0) return []
  const out = new Set((await optedOut(tx, ends)).map(({ recipient }) => recipient))
  return ends.filter(({ recipient }) => out.has(recipient))
}

/** Returns the teams that a change is meant for, and the recipient as they know it. */
async function teamsMeant(tx: Tx, { number, from, reply_to, occurred_at }: ReportedOptOut) {
  const replied = reply_to === null ? [] : await messageRepliedTo(tx, { id: reply_to, number })
  // An erased message no longer has the number.
  const asNumber = (each: { team_id: string; recipient: string }) =>
    each.recipient.startsWith('+') ? each : { ...each, recipient: `+${from}` }
  if (replied.length > 0) return replied.map(asNumber)
  const recipients = listForms(`+${from}`)
  const since = new Date(occurred_at.getTime() - WROTE_WITHIN_MS)
  const wrote = await teamsThatWrote(tx, { recipients, number, since })
  if (wrote.length > 0) return wrote
  const [only, ...others] = await teamsOfNumber(tx, number)
  return only && others.length === 0 ? [{ team_id: only.id, recipient: `+${from}` }] : []
}

/** Applies the recipients' opt-outs and opt-ins. @returns a result for each. */
export async function applyReportedOptOuts(
  tx: Tx,
  events: readonly ReportedOptOut[],
  _now: Date,
  { secrets }: { secrets?: Signatures | undefined } = {},
): Promise<EventResult[]> {
  const results: EventResult[] = []
  const changes: OptOutChange[] = []
  for (const event of events) {
    const teams = await teamsMeant(tx, event)
    const { is_out, by, occurred_at: at } = event
    changes.push(...teams.map(({ team_id, recipient }) => ({ team_id, recipient, is_out, at, by })))
    results.push(teams.length > 0 ? APPLIED : ignored('no team wrote to this recipient'))
  }
  await changeOptOuts(tx, changes, secrets)
  return results
}

/** The input of the keyed hash that replaces an erased number. */
const hashed = (teamId: string, number: string): Buffer => Buffer.from(`${teamId}\0${number}`)

export const erasedNumber = (secrets: Pick<Secrets, 'sign'>, teamId: string, number: string): string =>
  `${ERASED_PREFIX}${secrets.sign('erasure', hashed(teamId, number), 32).toString('hex')}`

const erasedNumbers = (secrets: Signatures, teamId: string, number: string): string[] =>
  secrets
    .signatures('erasure', hashed(teamId, number), 32)
    .map((hash) => `${ERASED_PREFIX}${hash.toString('hex')}`)

/** Returns the messages whose recipients have opted out, in any form of their numbers, including erased ones. */
export async function optedOutAmong<M extends { team_id: string; recipient: string }>(
  { tx, secrets }: { tx: Tx; secrets: Signatures },
  messages: readonly M[],
): Promise<ReadonlySet<M>> {
  if (messages.length === 0) return new Set()
  const asked = messages.flatMap((message) => {
    const { team_id } = message
    const forms = listForms(message.recipient)
    const erased = forms.flatMap((form) => erasedNumbers(secrets, team_id, form))
    return [...forms, ...erased].map((recipient) => ({ team_id, recipient, message }))
  })
  const found = new Set((await optedOut(tx, asked)).map((each) => `${each.team_id}/${each.recipient}`))
  return new Set(
    asked.flatMap(({ team_id, recipient, message }) =>
      found.has(`${team_id}/${recipient}`) ? [message] : [],
    ),
  )
}

/** @throws RequestError bad_request */
function requireNumber(number: string): string {
  const phone = normalisePhone(number)
  if (phone) return phone.e164
  throw new RequestError('bad_request', `${number} must be a number in E.164 format, such as +15551234567.`)
}

/** Opts a recipient out of, or in to, a team's marketing manually. @throws RequestError not_found, bad_request */
async function changeManually(
  { secrets, ...by }: Caller & { secrets?: Signatures },
  teamId: string,
  number: string,
  is_out: boolean,
) {
  const { tx, now, actor } = by
  await requireTeam(tx, teamId)
  const to = requireNumber(number)
  const change = { team_id: teamId, recipient: to, is_out, at: now, by: actor ?? 'service' }
  await changeOptOuts(tx, [change], secrets)
  const action = is_out ? 'whatsapp.opt-out' : 'whatsapp.opt-in'
  await record(by, { team_id: teamId, action, subject: to })
  return { to, at: now.toISOString(), by: change.by }
}

export const optOutManually = (by: Caller, teamId: string, number: string) =>
  changeManually(by, teamId, number, true)

export async function optInManually(by: Caller & { secrets: Signatures }, teamId: string, number: string) {
  const { to } = await changeManually(by, teamId, number, false)
  return { to, opted_out: false }
}
