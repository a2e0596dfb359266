/**
 * Sends an ended broadcast to its unreached contacts, after showing the first contacts and the email. The count
 * may need seconds, so this isn't a part of the broadcast's page.
 */

import { type Member, nextMembers } from '../../../db/messages/broadcasts/audience.sql.ts'
import type { BroadcastRow } from '../../../db/messages/broadcasts/broadcasts.sql.ts'
import { requireBroadcast } from '../../../db/messages/broadcasts/draft.ts'
import { skipsOf } from '../../../db/messages/broadcasts/recipients.sql.ts'
import {
  assertEnded,
  findUnreached,
  isEnded,
  type Unreached,
} from '../../../db/messages/broadcasts/resend.ts'
import { plural } from '../../../db/plural.ts'
import { type Cell, text } from '../components/cell.ts'
import type { Actions, Section } from '../components/section.ts'
import { findLacking, skipCell } from '../components/skips.ts'
import { buildAlerts, buildTable, button, get, hidden } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { type Question, redirect, show, type TeamRequest } from '../server/page.ts'
import { seenFields, seenIn } from './broadcast-ahead.ts'
import { previewSections } from './broadcast-preview.ts'
import { contactCell, loadNames } from './broadcast-recipients.ts'
import { broadcastPath, DUPLICATE } from './broadcast-sections.ts'
import { lackingWords, slotWords } from './template-parts.ts'

const MAX_SHOWN = 50
/** The column with the reason. */
const WHY = 'Why it wasn’t sent'
/** The field with the number of contacts to skip, for the question. */
const LACKING = 'lacking'
/** How many contacts are searched for the first ones, so that rare matches don't delay the page. */
const MAX_LOOKED_AT = 100_000

export async function againQuestion(request: TeamRequest<'id'>, { database }: PageDeps): Promise<Question> {
  const row = await requireBroadcast(database, request.team.id, request.params.id)
  assertEnded(row)
  const audience = seenIn(request).audience ?? 0
  const reached = Math.max(0, audience - Number(request.form.get(LACKING) ?? 0)) || audience
  return {
    question: `Send “${row.name}” to ${plural(reached, 'more contact')}?`,
    answer: `Send to ${plural(reached, 'contact')}`,
  }
}

const describeCount = (audience: number): string =>
  audience === 0
    ? 'All contacts that match now have already received it.'
    : `${plural(audience, 'contact')} ${audience === 1 ? 'matches now and hasn’t' : 'match now and haven’t'} received it. No one receives it twice. Unsubscribed or suppressed contacts are left out.`

/** Warns about contacts without a value for a variable, which are skipped. */
function lackingAlert({ audience, lacking, slots, unfilled }: Unreached): Section[] {
  if (lacking === audience)
    return buildAlerts([
      {
        tone: 'bad',
        title: 'Every contact would be skipped',
        text: `${lackingWords(slots, unfilled)} Duplicate the broadcast to set default values.`,
      },
    ])
  const which = `${slots.length > 1 ? 'one of ' : ''}${slotWords(slots)}`
  const title = `${plural(lacking, 'contact')} would be skipped: no value for ${which}`
  return buildAlerts([lacking > 0 && { tone: 'warn', title }])
}

/** Builds the button that sends it, unless every contact would be skipped. */
function buildActions(
  row: BroadcastRow,
  { audience, lacking }: Unreached,
  request: TeamRequest<'id'>,
): Actions {
  const send = button(broadcastPath(request, 'again'), `Send to ${plural(audience - lacking, 'contact')}`, {
    fields: [...seenFields({ ...row, audience }), hidden(LACKING, String(lacking), true)],
  })
  const duplicate = button(broadcastPath(request, 'duplicate'), DUPLICATE)
  return { forms: [lacking === audience ? duplicate : send] }
}

/** Tells if a contact would be skipped. */
function resultCell({ properties }: Member, slots: readonly string[]): Cell {
  const lacks = findLacking(slots, properties)
  return text(lacks.length === 0 ? 'would receive it' : `skipped: no value for ${slotWords(lacks)}`)
}

/** Lists the first unreached contacts with the reason, and with the result of each if only some would be skipped. */
async function buildContacts(
  { id, state, team_id, members }: BroadcastRow & { members: readonly Member[] },
  { audience, lacking, slots }: Unreached,
  request: TeamRequest,
  deps: PageDeps,
): Promise<Section> {
  const names = await loadNames(members, request, deps)
  const ids = members.map((member) => member.id)
  const skips = await skipsOf(deps.database, { team_id, broadcast_id: id }, ids)
  const skipped = new Map(skips.map((skip) => [skip.contact_id, skip]))
  const other =
    state === 'cancelled'
      ? text('The broadcast was cancelled')
      : text('Didn’t match', { detail: 'but matches now' })
  const isMixed = lacking > 0 && lacking < audience
  const cells = (member: Member) => {
    const skip = skipped.get(member.id)
    return {
      Contact: contactCell(member.email, names, request),
      [WHY]: skip ? skipCell(skip, { matches: true, lacks: findLacking(slots, member.properties) }) : other,
      Result: isMixed && resultCell(member, slots),
    }
  }
  return buildTable(members, cells, {
    title:
      lacking === audience ? 'Contacts to be skipped' : isMixed ? 'Contacts that match now' : 'Recipients',
    note:
      audience > members.length
        ? `The first ${members.length} of ${plural(audience, 'contact')}. ${(audience - members.length).toLocaleString('en-US')} more aren’t listed.`
        : undefined,
    main: 'Contact',
    grow: ['Contact'],
    empty: `None of the team’s first ${MAX_LOOKED_AT.toLocaleString('en-US')} contacts match. The others weren’t searched.`,
  })
}

/** Builds the preview for the first unreached contact, without links to reached contacts. */
async function buildPreview(
  row: BroadcastRow,
  first: Member | undefined,
  request: TeamRequest<'id'>,
  deps: PageDeps,
): Promise<Section[]> {
  const query = new URLSearchParams({ contact: first?.email ?? '' })
  // The contact is still ahead, as before the start of a broadcast.
  const [shown] = await previewSections({ ...row, started_at: null }, { ...request, query }, deps)
  if (!shown) return []
  return [shown.kind === 'inbox' ? { ...shown, links: [] } : shown]
}

export const again = get('editor', '/teams/:team/broadcasts/:id/again', async (request, deps) => {
  const { database } = deps
  const row = await requireBroadcast(database, request.team.id, request.params.id)
  if (!isEnded(row)) return redirect(broadcastPath(request))
  const unreached = await findUnreached(database, row)
  const { audience } = unreached
  const page = {
    title: 'Send to the rest of the contacts',
    lead: describeCount(audience),
    back: { href: broadcastPath(request), label: row.name },
  }
  if (audience === 0) return show({ ...page, sections: [] })
  const { members } = await nextMembers(
    database,
    { ...row, until: request.now.toISOString() },
    { after: null, look: MAX_LOOKED_AT, limit: MAX_SHOWN },
  )
  return show({
    ...page,
    actions: buildActions(row, unreached, request),
    above: lackingAlert(unreached),
    sections: [await buildContacts({ ...row, members }, unreached, request, deps)],
    aside: await buildPreview(row, members[0], request, deps),
  })
})
