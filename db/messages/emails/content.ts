/**
 * What an email says: its html and text, from the row and its template version. Pure.
 * Promises: same row, same version, same bytes, wherever it is shown or sent (DECISIONS: HTML of template emails); what
 * was forgotten is shown with blanks in place of its variables, and not sent.
 */
import type { CompiledVersion } from '../../content/templates/versions.ts'
import type { PlainTexts } from '../../process/plain-texts.ts'
import { filledBytes, fillSlots } from '../../validation/slots.ts'
import { LARGEST_PART, utf8Bytes } from '../../validation/strings.ts'
import type { EmailRow } from './emails.sql.ts'

/** The parts as sent; `text` is '' when there is none. */
export type Content = { html: string; text: string }

/** `version` is needed when the row names one. @throws Error when it is missing. */
function emailContent(row: EmailRow, version: CompiledVersion | undefined): Content {
  if (row.html !== null) return { html: row.html, text: row.body_text ?? '' }
  if (!version) throw new Error(`template version ${row.template_version_id} of email ${row.id} is missing`)
  const variables = row.variables ?? {}
  const text = row.body_text ?? (version.text ? fillSlots(version.text, variables, 'none') : '')
  return { html: fillSlots(version.html, variables, 'html'), text }
}

/** The parts as they are sent: an email without a text gets one made from its HTML. @throws as `emailContent`. */
export async function sentContent(
  row: EmailRow,
  version: CompiledVersion | undefined,
  texts: PlainTexts,
): Promise<Content> {
  const content = emailContent(row, version)
  if (content.text !== '') return content
  const ofTemplate = row.html === null ? version : undefined
  return { ...content, text: await madeText(content.html, ofTemplate, row.variables ?? {}, texts) }
}

/** The text made from HTML. The HTML of a template is converted once, with its variables in place. */
async function madeText(
  html: string,
  version: CompiledVersion | undefined,
  variables: Readonly<Record<string, string>>,
  texts: PlainTexts,
): Promise<string> {
  if (!version) return texts.ofHtml(html)
  return fillSlots(await texts.ofTemplate(version.html), variables, 'none')
}

/**
 * The same for eyes: where the variables were forgotten for their age, or went with a person, the template's own words
 * are left. @throws as `emailContent`.
 */
export function shownContent(row: EmailRow, version: CompiledVersion | undefined): Content {
  const slots = [...(version?.html.slots ?? []), ...(version?.text?.slots ?? [])]
  const blanks = Object.fromEntries(slots.map((slot) => [slot, '']))
  return emailContent({ ...row, variables: { ...blanks, ...row.variables } }, version)
}

/**
 * Which part of a template send would be too large, filled; null when none would. @param text the send's own, if
 * any.
 */
export function partTooLarge(
  version: CompiledVersion,
  variables: Readonly<Record<string, string>>,
  text: string | null,
): 'html' | 'text' | null {
  if (filledBytes(version.html, variables, 'html') > LARGEST_PART) return 'html'
  const own = text === null ? version.text : null
  return own && filledBytes(own, variables, 'none') > LARGEST_PART ? 'text' : null
}

/** What a template makes of these values as it is sent, or the part that is too large for a send. */
export async function previewOf(
  version: CompiledVersion,
  variables: Readonly<Record<string, string>>,
  texts: PlainTexts,
): Promise<Content | { too_large: 'html' | 'text' }> {
  const too_large = partTooLarge(version, variables, null)
  if (too_large) return { too_large }
  const html = fillSlots(version.html, variables, 'html')
  const text = version.text
    ? fillSlots(version.text, variables, 'none')
    : await madeText(html, version, variables, texts)
  return { html, text }
}

/** Kilobytes of the html, to two decimals (DECISIONS: size_kb). */
export const sizeKb = (html: string): number => Math.round((utf8Bytes(html) / 1024) * 100) / 100
