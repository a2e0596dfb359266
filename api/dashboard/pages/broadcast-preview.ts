/** What a broadcast says, as the contacts of its audience get it, one after the other, or a chosen one. */

import { contactByIdentity } from '../../../db/audience/contacts/contacts.sql.ts'
import { contactIdentity, noContact } from '../../../db/audience/contacts/edit.ts'
import { templateById, versionsByIds } from '../../../db/content/templates/templates.sql.ts'
import { compileVersion } from '../../../db/content/templates/versions.ts'
import { RequestError } from '../../../db/errors.ts'
import { fill } from '../../../db/fill.ts'
import { memberAfter } from '../../../db/messages/broadcasts/audience.sql.ts'
import type { BroadcastRow } from '../../../db/messages/broadcasts/broadcasts.sql.ts'
import { requireBroadcast } from '../../../db/messages/broadcasts/draft.ts'
import { addressed, mailingOf } from '../../../db/messages/broadcasts/mailing.ts'
import { previewOf } from '../../../db/messages/emails/content.ts'
import type { Section } from '../components/section.ts'
import { alertsOf, compact, field, get } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { framed, frameHeaders } from '../server/guard.ts'
import { idParam, queryParam } from '../server/list.ts'
import { raw, type TeamRequest } from '../server/page.ts'
import { TEXTS } from '../texts.ts'
import { broadcastPath } from './broadcast-sections.ts'

/** Where a preview's unsubscribe link leads: nowhere. */
const LINK = '#unsubscribe'

/** Among how many contacts the next of an audience is looked for: a page must not wait for one that few fit. */
const MAX_LOOKED_AT = 10_000

/** The version that is sent: the one fixed at the start, before that the template's newest. */
async function versionOf(
  { team_id, template_id, template_version_id }: BroadcastRow,
  { database }: PageDeps,
) {
  const id = template_version_id ?? (await templateById(database, team_id, template_id))?.version_id
  const [version] = id === undefined ? [] : await versionsByIds(database, [{ team_id, id }])
  if (!version) throw new RequestError('not_found', TEXTS.templateDeleted)
  return version
}

type Addressee = { email: string; properties: Readonly<Record<string, string>> }

/** The contact that is asked for by address, else the next of the audience. `id`: what the one after it follows. */
async function shownTo(
  row: BroadcastRow,
  { query }: TeamRequest,
  { database }: PageDeps,
): Promise<(Addressee & { id: string }) | null> {
  const chosen = queryParam(query, 'contact')
  if (chosen === undefined)
    return memberAfter(database, row, idParam(query, 'follows') ?? null, MAX_LOOKED_AT)
  const contact = await contactByIdentity(database, row.team_id, contactIdentity(chosen))
  if (!contact) throw noContact()
  return contact
}

/** The subject and the parts as one contact gets them. @throws RequestError bad_request where it would get none. */
async function mailingFor(row: BroadcastRow, contact: Addressee | null, deps: PageDeps) {
  const version = await versionOf(row, deps)
  const mailing = mailingOf(row, version.slots)
  const names = Object.fromEntries(mailing.slots.map((slot) => [slot, `[${slot}]`]))
  const item = contact
    ? addressed(mailing, contact, LINK)
    : addressed(
        { ...mailing, row: { ...row, variables: { ...names, ...row.variables } } },
        { email: 'someone@example.com', properties: {} },
        LINK,
      )
  if (typeof item === 'string')
    throw new RequestError('bad_request', fill(TEXTS.wouldBeSkipped, { reason: item }))
  const parts = await previewOf(compileVersion(version), item.variables ?? {}, deps.texts)
  if ('too_large' in parts)
    throw new RequestError('bad_request', fill(TEXTS.partTooLarge, { part: parts.too_large }))
  return { subject: item.subject, ...parts }
}

/** Whose email is shown, the way to the next contact, and how to choose another one. */
function choice(contact: (Addressee & { id: string }) | null, request: TeamRequest): Section {
  const next = contact && {
    href: `${broadcastPath(request)}?follows=${contact.id}#preview`,
    label: 'Next contact',
  }
  const first = request.query.has('follows') && {
    href: `${broadcastPath(request)}#preview`,
    label: 'First contact',
  }
  return {
    kind: 'filter',
    id: 'preview',
    title: 'Preview',
    note: contact
      ? `What ${contact.email} gets.`
      : `No ${first ? 'further ' : ''}contact of the audience was found, so variables without a default value show their names.`,
    action: broadcastPath(request),
    method: 'get',
    fields: [
      field('contact', 'As this contact gets it', {
        type: 'search',
        value: request.query.get('contact') ?? '',
        placeholder: contact?.email ?? '',
      }),
    ],
    submit: 'Show',
    reset: null,
    more: compact([next, first]),
  }
}

/** What the first of the audience gets, or the contact that was chosen, with the way to the next. */
export async function previewSections(
  row: BroadcastRow,
  request: TeamRequest,
  deps: PageDeps,
): Promise<Section[]> {
  let chosen: Section = choice(null, request)
  try {
    const contact = await shownTo(row, request, deps)
    chosen = choice(contact, request)
    const { subject, text } = await mailingFor(row, contact, deps)
    const search = new URLSearchParams({ contact: contact?.email ?? '' })
    return compact([
      chosen,
      { kind: 'code', title: 'Subject', code: subject },
      { kind: 'frame', title: 'HTML', src: `${broadcastPath(request, 'preview')}?${search}` },
      text !== '' && { kind: 'code', title: 'Plain text', code: text },
    ])
  } catch (error) {
    if (!(error instanceof RequestError)) throw error
    return [chosen, ...alertsOf([{ tone: 'bad', title: `No preview. ${error.message}` }])]
  }
}

const frame = get('viewer', '/teams/:team/broadcasts/:id/preview', async (request, deps) => {
  const row = await requireBroadcast(deps.database, request.team.id, request.params.id)
  const contact =
    queryParam(request.query, 'contact') === undefined ? null : await shownTo(row, request, deps)
  const { html } = await mailingFor(row, contact, deps)
  return raw(frameHeaders(false), framed(html))
})

export const broadcastPreviewPages = [frame]
