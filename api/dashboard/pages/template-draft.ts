/** Edits the draft of a template, shows its changes, and publishes or discards it. */

import { discardTemplateDraft, publishDraft, saveDraft } from '../../../db/content/templates/draft.ts'
import { type DraftRow, draftOf } from '../../../db/content/templates/drafts.sql.ts'
import type { ShownTemplate } from '../../../db/content/templates/templates.sql.ts'
import { RequestError } from '../../../db/errors.ts'
import { formatAge } from '../components/cell.ts'
import type { Form, Link, Section } from '../components/section.ts'
import { already, assertUnreplaced } from '../server/already.ts'
import { action, buildAlerts, buildForm, button, compact, get, hidden, large } from '../server/builders.ts'
import { questionAddress } from '../server/confirmation.ts'
import type { PageDeps } from '../server/deps.ts'
import { idParam } from '../server/list.ts'
import { redirect, show, type TeamRequest } from '../server/page.ts'
import { TEXTS } from '../texts.ts'
import { partChanges, slotAlerts } from './template-changes.ts'
import {
  compareSlots,
  describeDecoded,
  EDITOR,
  loadTemplate,
  partFields,
  readPart,
  slotWords,
  templatePath,
} from './template-parts.ts'

/** The values of `next` with which the editor's form is saved, then published or compared. */
const PUBLISH = 'publish'
const REVIEW = 'review'

function publishForm(template: ShownTemplate, draft: DraftRow, request: TeamRequest): Form {
  return button(templatePath(request, 'publish'), 'Publish draft', {
    fields: [hidden('draft', draft.id, true), hidden('version', template.version_id, true)],
  })
}

export const discardForm = (draft: DraftRow, request: TeamRequest): Form =>
  button(templatePath(request, 'discard'), 'Discard the draft', {
    fields: [hidden('draft', draft.id, true)],
    tone: 'danger',
  })

/** Builds the buttons that save the text of the editor, then compare or publish it, so that neither loses it. */
export const editorActions = (request: TeamRequest): Form[] => [
  button(templatePath(request, 'draft'), 'Review changes', { sends: EDITOR, next: REVIEW }),
  button(templatePath(request, 'draft'), 'Publish draft', { sends: EDITOR, next: PUBLISH, tone: 'quiet' }),
]

export const editor = (template: ShownTemplate, draft: DraftRow | null, request: TeamRequest): Section =>
  buildForm(templatePath(request, 'draft'), 'Save the draft', {
    title: 'Editor',
    note: draft
      ? undefined
      : 'Changes are saved as a draft. Emails use the published version until you publish the draft.',
    name: EDITOR,
    tone: 'quiet',
    fields: [...partFields(draft ?? template), hidden('seen', draft?.id ?? template.version_id, true)],
  })

export const savedBy = ({ saved_by, saved_at }: DraftRow, now: Date): string =>
  `Saved by ${saved_by}, ${formatAge(saved_at, now)}.`

export const changesLink = (request: TeamRequest): Link => ({
  href: templatePath(request, 'changes'),
  label: 'Review changes',
})

/** Warns if a draft isn't based on the published version, and about its new variables. */
export const draftAlerts = (template: ShownTemplate, draft: DraftRow): Section[] =>
  buildAlerts([
    draft.version_id !== template.version_id && {
      tone: 'warn',
      title: 'Another version was published after this draft was started',
      text: 'Publishing the draft replaces that version. Review the changes first.',
    },
    ...slotAlerts(template.slots, draft.slots, 'Once the draft is published'),
  ])

async function loadDraft(request: TeamRequest<'id'>, { database }: PageDeps) {
  const template = await loadTemplate(request, database)
  return { template, draft: await draftOf(database, request.team.id, template.id) }
}

/** @throws RequestError invalid_state without a draft, or if it isn't the one in the form. */
async function draftToAskAbout(request: TeamRequest<'id'>, deps: PageDeps) {
  const { template, draft } = await loadDraft(request, deps)
  const what = `The draft of ${template.name}`
  if (!draft) throw already(what, 'published or discarded')
  assertUnreplaced(what, request.form.get('draft') ?? '', draft.id)
  return { template, draft }
}

const changes = get('viewer', '/teams/:team/templates/:id/changes', async (request, deps) => {
  const { template, draft } = await loadDraft(request, deps)
  if (!draft) throw new RequestError('not_found', TEXTS.noDraft)
  const forms = request.team.role === 'viewer' ? [] : [publishForm(template, draft, request)]
  return show({
    title: `Changes in the draft of ${template.name}`,
    back: { href: templatePath(request), label: template.name },
    lead: savedBy(draft, request.now),
    actions: { forms },
    above: [
      ...buildAlerts(slotAlerts(template.slots, draft.slots, 'Once the draft is published')),
      ...partChanges(template, draft),
    ],
    even: 'Draft',
    sections: [
      { kind: 'frame', title: 'Published', src: `${templatePath(request, 'preview')}?of=published` },
    ],
    aside: [{ kind: 'frame', title: 'Draft', src: templatePath(request, 'preview') }],
  })
})

const save = action(large('editor'), '/teams/:team/templates/:id/draft', async (by, request) => {
  const { team, form } = request
  const template = await loadTemplate(request, by.tx)
  const shown = (await draftOf(by.tx, team.id, template.id)) ?? template
  const written = {
    html: readPart(form, 'html', shown.html),
    text: readPart(form, 'text', shown.text),
    seen: idParam(form, 'seen') ?? '',
  }
  const { draft, decoded } = await saveDraft(by, team.id, template.id, written)
  const done = draft ? 'The draft is saved.' : 'Same as the published version, so there is no draft.'
  const asked = draft && { draft: draft.id, version: template.version_id }
  const wanted = asked && form.get('next')
  const next =
    asked && wanted === PUBLISH
      ? questionAddress(templatePath(request, 'publish'), asked, request, by)
      : templatePath(request, ...compact([wanted === REVIEW && 'changes']))
  return redirect(next, `${done}${describeDecoded(decoded)}`)
})

const publish = action('editor', '/teams/:team/templates/:id/publish', async (by, request) => {
  const { team, params, form } = request
  const seen = { draft: idParam(form, 'draft') ?? '', version: idParam(form, 'version') ?? '' }
  const { slots } = await publishDraft(by, team.id, params.id, seen)
  const variables = slotWords(slots) || 'none'
  return redirect(templatePath(request), `The draft is published. Variables: ${variables}.`)
}).confirm(async (request, deps) => {
  const { template, draft } = await draftToAskAbout(request, deps)
  const { added: fresh } = compareSlots(template.slots, draft.slots)
  const warnings = compact([
    draft.version_id !== template.version_id &&
      'Another version was published after this draft was started. Publishing the draft replaces it.',
    fresh.length > 0 && `It has new variables. Emails without ${slotWords(fresh)} are rejected from then on.`,
  ])
  return {
    question: `Publish the draft of ${template.name}? Emails use it from then on.`,
    answer: 'Publish draft',
    warning: warnings.join(' ') || undefined,
  }
})

const discard = action('editor', '/teams/:team/templates/:id/discard', async (by, request) => {
  const { team, params, form } = request
  await discardTemplateDraft(by, team.id, params.id, idParam(form, 'draft') ?? '')
  return redirect(templatePath(request), 'The draft is discarded.')
}).confirm(async (request, deps) => {
  const { template, draft } = await draftToAskAbout(request, deps)
  return {
    question: `Discard the draft of ${template.name}, saved by ${draft.saved_by}?`,
    answer: 'Discard the draft',
    tone: 'danger',
  }
})

export const templateDraftPages = [changes, save, publish, discard]
