/**
 * Sends an ended broadcast to its unreached contacts, after showing the first contacts and the email. The count
 * may need seconds, so this isn't a part of the broadcast's page.
 */

import { type Member, nextMembers } from '../../../db/messages/broadcasts/audience.sql.ts'
import type { BroadcastRow } from '../../../db/messages/broadcasts/broadcasts.sql.ts'
import { requireBroadcast } from '../../../db/messages/broadcasts/draft.ts'
import { unreachedSize } from '../../../db/messages/broadcasts/resend.sql.ts'
import { assertEnded, isEnded } from '../../../db/messages/broadcasts/resend.ts'
import { plural } from '../../../db/plural.ts'
import type { Actions, Section } from '../components/section.ts'
import { buildTable, button, get } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { type Question, redirect, show, type TeamRequest } from '../server/page.ts'
import { seenFields, seenIn } from './broadcast-ahead.ts'
import { previewSections } from './broadcast-preview.ts'
import { contactCell, loadNames } from './broadcast-recipients.ts'
import { broadcastPath, TO_UNREACHED } from './broadcast-sections.ts'

const MAX_SHOWN = 10
/** How many contacts are searched for the first ones, so that rare matches don't delay the page. */
const MAX_LOOKED_AT = 100_000

export async function againQuestion(request: TeamRequest<'id'>, { database }: PageDeps): Promise<Question> {
  const row = await requireBroadcast(database, request.team.id, request.params.id)
  assertEnded(row)
  const audience = seenIn(request).audience ?? 0
  return {
    question: `Send “${row.name}” to ${plural(audience, 'more contact')}?`,
    answer: `Send to ${plural(audience, 'contact')}`,
  }
}

const describeCount = (audience: number): string =>
  audience === 0
    ? 'All contacts that match now have already received it.'
    : `${plural(audience, 'contact')} ${audience === 1 ? 'matches now and hasn’t' : 'match now and haven’t'} received it. No one receives it twice.`

/** Lists the first unreached contacts. */
async function buildContacts(
  members: readonly Member[],
  audience: number,
  request: TeamRequest,
  deps: PageDeps,
): Promise<Section> {
  const names = await loadNames(members, request, deps)
  return buildTable(members, ({ email }) => ({ Contact: contactCell(email, names, request) }), {
    title: 'Recipients',
    note:
      audience > members.length
        ? `The first ${members.length} of ${plural(audience, 'contact')}.`
        : undefined,
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
  const [shown] = await previewSections(row, { ...request, query }, deps)
  if (!shown) return []
  return [shown.kind === 'inbox' ? { ...shown, links: [] } : shown]
}

export const again = get('editor', '/teams/:team/broadcasts/:id/again', async (request, deps) => {
  const { database } = deps
  const row = await requireBroadcast(database, request.team.id, request.params.id)
  if (!isEnded(row)) return redirect(broadcastPath(request))
  const audience = await unreachedSize(database, row)
  const page = {
    title: TO_UNREACHED,
    lead: describeCount(audience),
    back: { href: broadcastPath(request), label: row.name },
  }
  if (audience === 0) return show({ ...page, sections: [] })
  const { members } = await nextMembers(
    database,
    { ...row, until: request.now.toISOString() },
    { after: null, look: MAX_LOOKED_AT, limit: MAX_SHOWN },
  )
  const actions: Actions = {
    forms: [
      button(broadcastPath(request, 'again'), `Send to ${plural(audience, 'contact')}`, {
        fields: seenFields({ ...row, audience }),
      }),
    ],
    links: [{ href: broadcastPath(request), label: 'Cancel' }],
  }
  return show({
    ...page,
    actions,
    sections: [await buildContacts(members, audience, request, deps)],
    aside: await buildPreview(row, members[0], request, deps),
  })
})
