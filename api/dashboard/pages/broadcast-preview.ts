/** What a broadcast says, as a chosen contact would get it. */

import { contactByIdentity } from '../../../db/audience/contacts/contacts.sql.ts'
import { contactIdentity, noContact } from '../../../db/audience/contacts/edit.ts'
import { templateById, versionsByIds } from '../../../db/content/templates/templates.sql.ts'
import { compileVersion } from '../../../db/content/templates/versions.ts'
import { Refusal } from '../../../db/errors.ts'
import type { BroadcastRow } from '../../../db/messages/broadcasts/broadcasts.sql.ts'
import { broadcastOrRefusal } from '../../../db/messages/broadcasts/draft.ts'
import { addressed, letterOf } from '../../../db/messages/broadcasts/letter.ts'
import { previewOf } from '../../../db/messages/emails/content.ts'
import type { Section } from '../drawn/section.ts'
import type { PageDeps } from '../served/deps.ts'
import { framed, frameHeaders } from '../served/guard.ts'
import { given } from '../served/list.ts'
import { get, some } from '../served/made.ts'
import { raw, type TeamRequest, teamPath } from '../served/page.ts'

/** Where a preview's unsubscribe link leads: nowhere. */
const LINK = '#unsubscribe'

/** The version that is sent: the one fixed at the start, before that the template's newest. */
async function versionOf(
  { team_id, template_id, template_version_id }: BroadcastRow,
  { database }: PageDeps,
) {
  const id = template_version_id ?? (await templateById(database, team_id, template_id))?.version_id
  const [version] = id === undefined ? [] : await versionsByIds(database, [{ team_id, id }])
  if (!version) throw new Refusal('not_found', 'its template was deleted')
  return version
}

/** The subject and the parts as one contact gets them. @throws Refusal bad_request where it would get none. */
async function letterFor(row: BroadcastRow, { query }: TeamRequest, deps: PageDeps) {
  const version = await versionOf(row, deps)
  const letter = letterOf(row, version.slots)
  const chosen = given(query, 'contact')
  const names = Object.fromEntries(letter.slots.map((slot) => [slot, `[${slot}]`]))
  const contact = chosen && (await contactByIdentity(deps.database, row.team_id, contactIdentity(chosen)))
  if (chosen && !contact) throw noContact()
  const item = contact
    ? addressed(letter, contact, LINK)
    : addressed(
        { ...letter, row: { ...row, variables: { ...names, ...row.variables } } },
        { email: 'someone@example.com', properties: {} },
        LINK,
      )
  if (typeof item === 'string') throw new Refusal('bad_request', `${chosen} would be skipped: ${item}`)
  const parts = previewOf(compileVersion(version), item.variables ?? {})
  if ('too_large' in parts) throw new Refusal('bad_request', `the ${parts.too_large} is larger than 1 MiB`)
  return { subject: item.subject, ...parts }
}

const frameOf = ({ team, params }: TeamRequest): string =>
  teamPath(team, 'broadcasts', params.id ?? '', 'preview')

/** The choice of a contact, and what it would get. */
export async function previewSections(
  row: BroadcastRow,
  request: TeamRequest,
  deps: PageDeps,
): Promise<Section[]> {
  const contact = request.query.get('contact') ?? ''
  const choice: Section = {
    kind: 'filter',
    title: 'Preview',
    action: teamPath(request.team, 'broadcasts', row.id),
    method: 'get',
    fields: [{ name: 'contact', label: 'As this contact gets it', type: 'search', value: contact }],
    submit: 'Show',
    reset: null,
  }
  try {
    const { subject, text } = await letterFor(row, request, deps)
    return some([
      choice,
      { kind: 'code', title: 'Subject', code: subject },
      { kind: 'frame', title: 'HTML', src: `${frameOf(request)}?${new URLSearchParams({ contact })}` },
      text !== '' && { kind: 'code', title: 'Plain text', code: text },
    ])
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    return [
      choice,
      { kind: 'alerts', calm: '', alerts: [{ tone: 'bad', title: `No preview: ${error.message}` }] },
    ]
  }
}

const frame = get('viewer', '/teams/:team/broadcasts/:id/preview', async (request, deps) => {
  const row = await broadcastOrRefusal(deps.database, request.team.id, request.params.id ?? '')
  const { html } = await letterFor(row, request, deps)
  return raw(frameHeaders(false), framed(html))
})

export const broadcastPreviewPages = [frame]
