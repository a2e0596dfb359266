/**
 * Renders the HTML and text of an email from its row and template version. The same row and version always give the
 * same bytes (DECISIONS: HTML of template emails). Purged variables are shown as blanks. Pure.
 */
import type { CompiledVersion } from '../../content/templates/versions.ts'
import type { PlainTexts } from '../../process/plain-texts.ts'
import { filledBytes, fillSlots } from '../../validation/slots.ts'
import { LARGEST_PART, utf8Bytes } from '../../validation/strings.ts'
import type { EmailRow } from './emails.sql.ts'

/** The parts as sent. `text` may be ''. */
export type Content = { html: string; text: string }

/** @param version required if the row names one. @throws Error if it is missing. */
function emailContent(row: EmailRow, version: CompiledVersion | undefined): Content {
  if (row.html !== null) return { html: row.html, text: row.body_text ?? '' }
  if (!version) throw new Error(`template version ${row.template_version_id} of email ${row.id} is missing`)
  const variables = row.variables ?? {}
  const text = row.body_text ?? (version.text ? fillSlots(version.text, variables, 'none') : '')
  return { html: fillSlots(version.html, variables, 'html'), text }
}

/** Returns the parts to send. A missing text is created from the HTML. @throws as `emailContent`. */
export async function sentContent(row: EmailRow, version: CompiledVersion | undefined, texts: PlainTexts) {
  const content = emailContent(row, version)
  if (content.text !== '') return content
  const ofTemplate = row.html === null ? version : undefined
  return { ...content, text: await madeText(content.html, ofTemplate, row.variables ?? {}, texts) }
}

/** Creates the text from the HTML. A template's HTML is converted once, with its variables in place. */
async function madeText(
  html: string,
  version: CompiledVersion | undefined,
  variables: Readonly<Record<string, string>>,
  texts: PlainTexts,
): Promise<string> {
  if (!version) return texts.ofHtml(html)
  return fillSlots(await texts.ofTemplate(version.html), variables, 'none')
}

/** Returns the parts for display. Purged or erased variables stay empty. @throws as `emailContent`. */
export function shownContent(row: EmailRow, version: CompiledVersion | undefined): Content {
  const slots = [...(version?.html.slots ?? []), ...(version?.text?.slots ?? [])]
  const blanks = Object.fromEntries(slots.map((slot) => [slot, '']))
  return emailContent({ ...row, variables: { ...blanks, ...row.variables } }, version)
}

/** Returns which part of a template send would be too large when filled, or null. @param text the send's own. */
export function partTooLarge(
  version: CompiledVersion,
  variables: Readonly<Record<string, string>>,
  text: string | null,
): 'html' | 'text' | null {
  if (filledBytes(version.html, variables, 'html') > LARGEST_PART) return 'html'
  const own = text === null ? version.text : null
  return own && filledBytes(own, variables, 'none') > LARGEST_PART ? 'text' : null
}

/** Renders a preview of a template with these values, or returns the part that is too large. */
export async function buildPreview(
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

/** Returns the size of the HTML in kilobytes, to two decimals. */
export const sizeKb = (html: string): number => Math.round((utf8Bytes(html) / 1024) * 100) / 100
