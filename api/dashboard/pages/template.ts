/** The page of a template: editor, preview, test email, stats and versions. */

import type { DraftRow } from '../../../db/content/templates/drafts.sql.ts'
import type { ShownTemplate } from '../../../db/content/templates/templates.sql.ts'
import { invalidField } from '../../../db/errors.ts'
import { parseMailbox } from '../../../db/validation/address.ts'
import { text } from '../components/cell.ts'
import type { Section } from '../components/section.ts'
import { buildFacts, buildForm, compact, field, get, post } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { redirect, show, type TeamRequest, teamPath } from '../server/page.ts'
import { sendOwn } from './own-mail.ts'
import { headersCell, templateActs, wholeActions, wholeForms } from './template-actions.ts'
import { changesLink, draftAlerts, editor, savedBy, templateDraftPages } from './template-draft.ts'
import { compareSlots, slotWords, templatePath, UNPUBLISHED } from './template-parts.ts'
import {
  choice,
  type PreviewTemplate,
  preview,
  readPreview,
  readValues,
  renderPreview,
  templatePreviewPages,
  valueFields,
} from './template-preview.ts'
import { templateFigures } from './template-stats.ts'
import { history, templateVersionsPages } from './template-versions.ts'
import { suggestSenders } from './test-email.ts'

async function testForm(previewed: PreviewTemplate, request: TeamRequest, { database }: PageDeps) {
  const [from = ''] = await suggestSenders(database, request.team.id)
  const values = valueFields(readValues(previewed, request.query)).map((field) => ({
    ...field,
    label: `Value of ${field.label}`,
  }))
  const what = previewed.isDraft ? 'The draft' : 'The published version'
  return buildForm(templatePath(request, 'test'), 'Send it to me', {
    title: 'Send a test',
    // Publishing is the main action while there is a draft.
    folded: previewed.isDraft ? 'quiet' : true,
    note: `${what} is sent to ${request.person.email} with these values, and counts towards the quota like any email.`,
    fields: [
      field('from', 'From', {
        required: true,
        value: from,
        hint: 'An address at one of your verified domains.',
      }),
      ...values,
      ...choice(previewed),
    ],
  })
}

/** Lists the variables of the published version, and how those of the draft differ. */
function variableFacts({ slots }: ShownTemplate, draft: DraftRow | null) {
  const { added, removed } = compareSlots(slots, draft?.slots ?? slots)
  return {
    Variables: text(slotWords(slots)),
    'New in the draft': added.length > 0 && text(slotWords(added)),
    'Not in the draft': removed.length > 0 && text(slotWords(removed)),
  }
}

/** Shows the preview and the editor in columns of the same width. Viewers only have the preview. */
const sideBySide = (shown: readonly Section[], editing: readonly Section[]) =>
  editing.length === 0 ? { sections: shown } : { even: 'Editor', sections: shown, aside: editing }

const page = get('viewer', '/teams/:team/templates/:id', async (request, deps) => {
  const { team } = request
  const { template, draft, previewed } = await readPreview(request, deps, request.query)
  const edits = team.role !== 'viewer'
  const emails = `${teamPath(team, 'emails')}?kind=all&template=${template.id}`
  return show({
    title: template.name,
    state: draft ? text(UNPUBLISHED, { tone: 'warn' }) : text('published', { tone: 'good' }),
    lead: draft
      ? `${savedBy(draft, request.now)} Emails use the published version until the draft is published.`
      : undefined,
    back: { href: teamPath(team, 'templates'), label: 'Templates' },
    actions: edits ? wholeActions(draft, request) : { links: draft ? [changesLink(request)] : [] },
    above: draft ? draftAlerts(template, draft) : undefined,
    ...sideBySide(
      await preview({ draft, previewed }, request, deps),
      edits ? [editor(template, draft, request)] : [],
    ),
    below: compact([
      edits && (await testForm(previewed, request, deps)),
      edits && wholeForms(template, request),
      await templateFigures(request, deps, template.id),
      await history(template, request, deps),
      buildFacts({
        ...variableFacts(template, draft),
        'List-Unsubscribe headers': headersCell(template, request),
        Emails: text('Show the emails that use it', { href: emails }),
        ID: text(template.id, { code: true, copy: true }),
      }),
    ]),
  })
})

const test = post('editor', '/teams/:team/templates/:id/test', async (request, deps) => {
  const { team, form, person } = request
  const { template, previewed } = await readPreview(request, deps, form)
  const from = parseMailbox(form.get('from') ?? '')
  if (!from) throw invalidField('from', 'must be an email address')
  const variables = readValues(previewed, form)
  // An email can't refer to a draft, so the test contains the rendered text.
  const content = previewed.isDraft
    ? { ...(await renderPreview(previewed, variables, deps)), variables: {} }
    : { template_id: template.id, variables }
  const mail = { from, to: [person.email], subject: `Test: ${template.name}`, ...content, tags: ['test'] }
  await sendOwn(deps, { team_id: team.id, domain: null }, mail)
  return redirect(templatePath(request), `A test is on its way to ${person.email}.`)
})

export const templatePages = [
  page,
  ...templatePreviewPages,
  ...templateActs,
  ...templateDraftPages,
  ...templateVersionsPages,
  test,
]
