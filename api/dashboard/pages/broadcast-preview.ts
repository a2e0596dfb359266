/** Previews a broadcast as a contact of its audience, or any other contact, would receive it. */

import { contactByIdentity } from '../../../db/audience/contacts/contacts.sql.ts'
import { contactIdentity, noContact } from '../../../db/audience/contacts/edit.ts'
import { templateById, versionsByIds } from '../../../db/content/templates/templates.sql.ts'
import { compileVersion } from '../../../db/content/templates/versions.ts'
import { RequestError } from '../../../db/errors.ts'
import { fill } from '../../../db/fill.ts'
import { memberAfter } from '../../../db/messages/broadcasts/audience.sql.ts'
import type { BroadcastRow } from '../../../db/messages/broadcasts/broadcasts.sql.ts'
import { requireBroadcast } from '../../../db/messages/broadcasts/draft.ts'
import { addressed, toMailing } from '../../../db/messages/broadcasts/mailing.ts'
import { buildPreview } from '../../../db/messages/emails/content.ts'
import { findName } from '../components/names.ts'
import type { Link, Section } from '../components/section.ts'
import { buildAlerts, compact, field, get } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { framed, frameHeaders } from '../server/guard.ts'
import { idParam, queryParam } from '../server/list.ts'
import { raw, type TeamRequest } from '../server/page.ts'
import { TEXTS } from '../texts.ts'
import { broadcastPath } from './broadcast-sections.ts'

/** The unsubscribe link of a preview, which does nothing. */
const LINK = '#unsubscribe'

/** How many contacts are searched for the next one of the audience, so that rare matches don't delay the page. */
const MAX_LOOKED_AT = 10_000

/** Returns the version that is sent: the one fixed at the start, or the template's newest before that. */
async function loadVersion(
  { team_id, template_id, template_version_id }: BroadcastRow,
  { database }: PageDeps,
) {
  const id = template_version_id ?? (await templateById(database, team_id, template_id))?.version_id
  const [version] = id === undefined ? [] : await versionsByIds(database, [{ team_id, id }])
  if (!version) throw new RequestError('not_found', TEXTS.templateDeleted)
  return version
}

type PreviewContact = { email: string; properties: Readonly<Record<string, string>> }

/** Returns the requested contact, otherwise the next one of the audience. */
async function shownTo(
  row: BroadcastRow,
  { query }: TeamRequest,
  { database }: PageDeps,
): Promise<(PreviewContact & { id: string }) | null> {
  const chosen = queryParam(query, 'contact')
  if (chosen === undefined)
    return memberAfter(database, row, idParam(query, 'follows') ?? null, MAX_LOOKED_AT)
  const contact = await contactByIdentity(database, row.team_id, contactIdentity(chosen))
  if (!contact) throw noContact()
  return contact
}

/** A contact that doesn't exist, without properties. */
const ANYONE: PreviewContact = { email: 'someone@example.com', properties: {} }

/**
 * Renders the email for a contact. Without one, or if the contact would be skipped, variables without a value
 * show their names.
 * @returns also why the contact would be skipped, or null.
 * @throws RequestError bad_request if the email can't be rendered.
 */
async function mailingFor(row: BroadcastRow, contact: PreviewContact | null, deps: PageDeps) {
  const version = await loadVersion(row, deps)
  const mailing = toMailing(row, version.slots)
  const names = Object.fromEntries(mailing.slots.map((slot) => [slot, `[${slot}]`]))
  const named = { ...mailing, row: { ...row, variables: { ...names, ...row.variables } } }
  const own = contact ? addressed(mailing, contact, LINK) : null
  const skipped = typeof own === 'string' ? own : null
  const item = typeof own === 'object' && own ? own : addressed(named, contact ?? ANYONE, LINK)
  if (typeof item === 'string')
    throw new RequestError('bad_request', fill(TEXTS.wouldBeSkipped, { reason: item }))
  const parts = await buildPreview(compileVersion(version), item.variables ?? {}, deps.texts)
  if ('too_large' in parts)
    throw new RequestError('bad_request', fill(TEXTS.partTooLarge, { part: parts.too_large }))
  return { subject: item.subject, skipped, ...parts }
}

type ChosenContact = (PreviewContact & { id: string }) | null

/** Returns links to the next contact of the audience and back to the first. */
function waysOn(contact: ChosenContact, request: TeamRequest<'id'>): Link[] {
  const path = broadcastPath(request)
  return compact<Link>([
    request.query.has('follows') && { href: `${path}#preview`, label: 'First contact' },
    contact && { href: `${path}?follows=${contact.id}#preview`, label: 'Next contact' },
  ])
}

/** Builds the form that chooses another contact. */
const choice = (contact: ChosenContact, request: TeamRequest<'id'>): Section => ({
  kind: 'filter',
  title: 'Choose another contact',
  fold: !request.query.has('contact'),
  action: broadcastPath(request),
  method: 'get',
  fields: [
    field('contact', 'As this contact receives it', {
      type: 'search',
      value: request.query.get('contact') ?? '',
      placeholder: contact?.email ?? 'Address of a contact',
    }),
  ],
  submit: 'Show',
  reset: null,
})

/** Explains the preview. A broadcast that has started has already skipped contacts. */
function writeNote(
  contact: ChosenContact,
  skipped: string | null,
  { started_at }: BroadcastRow,
  request: TeamRequest,
): string | undefined {
  const names = 'Variables without a value show their names.'
  if (skipped !== null)
    return started_at === null ? `${fill(TEXTS.wouldBeSkipped, { reason: skipped })} ${names}` : names
  if (contact) return undefined
  return `No ${request.query.has('follows') ? 'more contacts' : 'contact'} found in the audience. ${names}`
}

/** Builds the preview for the chosen contact, or the first of the audience, with a link to the next. */
export async function previewSections(row: BroadcastRow, request: TeamRequest<'id'>, deps: PageDeps) {
  let contact: ChosenContact = null
  try {
    contact = await shownTo(row, request, deps)
    const { subject, text, skipped } = await mailingFor(row, contact, deps)
    const search = new URLSearchParams({ contact: contact?.email ?? '' })
    return compact<Section>([
      {
        kind: 'inbox',
        id: 'preview',
        title: contact ? `Preview for ${findName(contact.properties) ?? contact.email}` : 'Preview',
        note: writeNote(contact, skipped, row, request),
        from: row.from_address,
        subject,
        src: `${broadcastPath(request, 'preview')}?${search}`,
        links: waysOn(contact, request),
      },
      choice(contact, request),
      text !== '' && { kind: 'code', title: 'Plain text', fold: true, code: text },
    ])
  } catch (error) {
    if (!(error instanceof RequestError)) throw error
    const problem = { tone: 'bad', title: `Can’t show a preview. ${error.message}` } as const
    return [...buildAlerts([problem], { id: 'preview' }), choice(contact, request)]
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
