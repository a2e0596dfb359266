/**
 * Previews the draft or the published version of a template with sample values. Editors can also preview
 * unsaved text: the editor's form is sent into the frame next to it, so that nothing is stored and the page
 * stays open.
 */

import { type DraftRow, draftOf } from '../../../db/content/templates/drafts.sql.ts'
import { slotsOfParts } from '../../../db/content/templates/save.ts'
import type { ShownTemplate } from '../../../db/content/templates/templates.sql.ts'
import { compileVersion } from '../../../db/content/templates/versions.ts'
import { RequestError } from '../../../db/errors.ts'
import { fill } from '../../../db/fill.ts'
import { buildPreview } from '../../../db/messages/emails/content.ts'
import { decodeVariables } from '../../../db/validation/attributes.ts'
import { escapeHtml, UNSUBSCRIBE_SLOT } from '../../../db/validation/slots.ts'
import type { Field, Section } from '../components/section.ts'
import { buildAlerts, buildForm, compact, field, get, hidden, large, post } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { framed, frameHeaders } from '../server/guard.ts'
import { addressWith } from '../server/list.ts'
import { raw, type TeamRequest } from '../server/page.ts'
import { TEXTS } from '../texts.ts'
import { EDITOR, loadTemplate, readPart, templatePath } from './template-parts.ts'

const MAX_FIELDS = 50

/** The draft, otherwise the published version. It is previewed and sent as a test. */
export type PreviewTemplate = Pick<
  ShownTemplate,
  'name' | 'html' | 'text' | 'slots' | 'list_unsubscribe' | 'keeps_equals'
> & { isDraft: boolean }

/** Returns the draft, or the published version if `of` requests it or no draft exists. @throws RequestError. */
export async function readPreview(
  request: TeamRequest,
  { database }: PageDeps,
  given: URLSearchParams,
): Promise<{ template: ShownTemplate; draft: DraftRow | null; previewed: PreviewTemplate }> {
  const template = await loadTemplate(request, database)
  const draft = await draftOf(database, request.team.id, template.id)
  const isDraft = draft !== null && given.get('of') !== 'published'
  const { html, text, slots } = isDraft ? draft : template
  const keeps_equals = isDraft || template.keeps_equals
  return { template, draft, previewed: { ...template, html, text, slots, keeps_equals, isDraft } }
}

/** Returns a sample value: the slot's name, or a URL for the unsubscribe link, which must be valid in a header. */
const buildSample = (slot: string): string =>
  slot === UNSUBSCRIBE_SLOT ? 'https://example.com/unsubscribe' : `[${slot}]`

/** Returns the value of each slot: the given one, otherwise a sample. */
export const readValues = ({ slots }: PreviewTemplate, given: URLSearchParams): Record<string, string> =>
  Object.fromEntries(slots.map((slot) => [slot, given.get(`v.${slot}`) ?? buildSample(slot)]))

/** Builds fields for the first slots. The others have their sample values. */
export const valueFields = (values: Record<string, string>): Field[] =>
  Object.entries(values)
    .slice(0, MAX_FIELDS)
    .map(([slot, value]) => field(`v.${slot}`, slot, { value }))

/** Fills a template. @throws RequestError bad_request, like a send, for an invalid value or a too large result. */
export async function renderPreview(
  previewed: PreviewTemplate,
  values: Record<string, string>,
  { texts }: Pick<PageDeps, 'texts'>,
) {
  const filled = await buildPreview(
    compileVersion({ ...previewed, body_text: previewed.text }),
    values,
    texts,
  )
  if (!('too_large' in filled)) return filled
  throw new RequestError('bad_request', fill(TEXTS.filledTooLarge, { part: filled.too_large }))
}

async function parts(
  previewed: PreviewTemplate,
  values: Record<string, string>,
  { frame, deps }: { frame: Section; deps: PageDeps },
): Promise<Section[]> {
  try {
    const { text: plain } = await renderPreview(previewed, values, deps)
    return compact([frame, plain !== '' && { kind: 'code', title: 'Plain text', fold: true, code: plain }])
  } catch (error) {
    if (!(error instanceof RequestError)) throw error
    return buildAlerts([{ tone: 'bad', title: `Can’t show a preview. ${error.message}` }])
  }
}

/** Builds the hidden field that keeps which version is previewed. */
export const choice = ({ isDraft }: PreviewTemplate): Field[] => (isDraft ? [] : [hidden('of', 'published')])

const FRAME = 'preview'

export async function preview(
  { draft, previewed }: { draft: DraftRow | null; previewed: PreviewTemplate },
  request: TeamRequest,
  deps: PageDeps,
): Promise<Section[]> {
  const values = readValues(previewed, request.query)
  const fields = compact([...valueFields(values), draft && choice(previewed)])
  const search = new URLSearchParams()
  for (const { name, value = '' } of fields) search.set(name, value)
  const edits = request.team.role !== 'viewer'
  const fromEditor: Section = buildForm(templatePath(request, 'preview'), 'Preview unsaved text', {
    title: 'Sample values',
    joins: { form: EDITOR, frame: FRAME },
    rows: true,
    tone: 'quiet',
    fields: valueFields(values),
  })
  const samples = buildForm(templatePath(request), 'Show with these values', {
    title: 'Sample values',
    method: 'get',
    rows: true,
    tone: 'quiet',
    fields,
  })
  const links = [
    { label: 'Draft', href: addressWith(request, { of: undefined }), current: previewed.isDraft },
    { label: 'Published', href: addressWith(request, { of: 'published' }), current: !previewed.isDraft },
  ]
  const frame: Section = {
    kind: 'frame',
    title: 'Preview',
    name: FRAME,
    src: `${templatePath(request, 'preview')}?${search}`,
    links: draft ? links : undefined,
  }
  const form = edits ? [fromEditor] : previewed.slots.length > 0 ? [samples] : []
  return [...(await parts(previewed, values, { frame, deps })), ...form]
}

const frame = get('viewer', '/teams/:team/templates/:id/preview', async (request, deps) => {
  const { previewed } = await readPreview(request, deps, request.query)
  const { html, text } = await renderPreview(previewed, readValues(previewed, request.query), deps)
  return raw(frameHeaders(false), framed(html || `<pre>${escapeHtml(text)}</pre>`))
})

/** Renders the HTML of the editor with its plain text below, or the error. */
async function writtenIn(
  { form }: TeamRequest,
  { name, list_unsubscribe }: ShownTemplate,
  deps: PageDeps,
): Promise<string> {
  const { html: source } = decodeVariables(readPart(form, 'html'))
  const written = { html: source, text: readPart(form, 'text'), list_unsubscribe }
  try {
    const previewed = { ...written, name, slots: slotsOfParts(written), keeps_equals: true, isDraft: true }
    const { html, text } = await renderPreview(previewed, readValues(previewed, form), deps)
    return text === '' ? html : `${html}\n<hr><pre>${escapeHtml(text)}</pre>`
  } catch (error) {
    if (!(error instanceof RequestError)) throw error
    return `<p>Can’t show a preview. ${escapeHtml(error.message)}</p>`
  }
}

const written = post(large('editor'), '/teams/:team/templates/:id/preview', async (request, deps) => {
  const template = await loadTemplate(request, deps.database)
  return raw(frameHeaders(false), framed(await writtenIn(request, template, deps)))
})

export const templatePreviewPages = [frame, written]
