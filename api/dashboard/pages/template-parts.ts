/** Shared by the pages of email templates: finding a template, its form fields, and lists of variables. */

import { type ShownTemplate, templateById } from '../../../db/content/templates/templates.sql.ts'
import type { Tx } from '../../../db/postgres/pool.ts'
import { keptLinesOr } from '../components/lines.ts'
import type { Field } from '../components/section.ts'
import { requireFound } from '../server/already.ts'
import { field } from '../server/builders.ts'
import { type TeamRequest, teamPath } from '../server/page.ts'
import { TEXTS } from '../texts.ts'

const MAX_SLOTS_NAMED = 20

/** Says that a template has a draft, next to its name. */
export const UNPUBLISHED = 'unpublished changes'

/** The ID of the editor's form, which the preview joins. */
export const EDITOR = 'editor'

export const templatePath = ({ team, params }: TeamRequest<'id'>, ...rest: string[]): string =>
  teamPath(team, 'templates', params.id, ...rest)

/** Returns the template of a request. @throws RequestError not_found. */
export const loadTemplate = async ({ team, params }: TeamRequest<'id'>, tx: Tx): Promise<ShownTemplate> =>
  requireFound(await templateById(tx, team.id, params.id), TEXTS.noTemplate)

/** Lists the first slots, and the number of others. */
export const slotWords = (slots: readonly string[]): string =>
  slots.slice(0, MAX_SLOTS_NAMED).join(', ') +
  (slots.length > MAX_SLOTS_NAMED ? ` and ${slots.length - MAX_SLOTS_NAMED} more` : '')

/** Explains why every contact would be skipped. @param unfilled the variables without a value in any contact. */
export const lackingWords = (slots: readonly string[], unfilled: readonly string[]): string =>
  unfilled.length > 0
    ? `No contact has a value for ${slotWords(unfilled)}.`
    : `Each contact lacks a value for ${slots.length > 1 ? 'one of ' : ''}${slotWords(slots)}.`

export const compareSlots = (before: readonly string[], after: readonly string[]) => ({
  added: [...new Set(after).difference(new Set(before))],
  removed: [...new Set(before).difference(new Set(after))],
})

/** Returns a sentence about the percent-encoded variables in links, or '' without any. */
export const describeDecoded = (decoded: readonly string[]): string =>
  decoded.length > 0 ? ` URL-encoded variables in links were decoded: ${slotWords(decoded)}.` : ''

export const partFields = ({ html, text: plain }: { html: string; text: string }): Field[] => [
  field('html', 'HTML', {
    type: 'textarea',
    code: true,
    rows: 16,
    required: true,
    value: html,
    hint: 'Write a variable as {{name}}. Each email has its own value for it, in which HTML is escaped. Subjects can contain variables only in broadcasts.',
  }),
  field('text', 'Plain text (optional)', { type: 'textarea', code: true, rows: 6, value: plain }),
]

/** Reads a part of a template from a form. @param stored the value shown, which is kept if it wasn't edited. */
export const readPart = (form: URLSearchParams, name: string, stored?: string): string =>
  keptLinesOr(form.get(name) ?? '', stored)
