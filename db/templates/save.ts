/**
 * Saves email templates: a change makes a new version, so that an email keeps what it was accepted with.
 * Promises: what is stored compiles, fits the limits and names its slots in order of first appearance.
 * Decisions: slots, sizes.
 */
import { v7 as uuidv7 } from 'uuid'
import { Refusal } from '../errors.ts'
import type { At } from '../postgres/pool.ts'
import { teamOrRefusal } from '../teams/view.ts'
import { nameProblem } from '../text/name.ts'
import { compileTemplate, TemplateFault } from '../text/slots.ts'
import { LARGEST_PART, textFault, utf8Bytes } from '../text/strings.ts'
import { currentVersion, insertTemplate, insertVersion, setCurrentVersion } from './templates.sql.ts'

export type SavedTemplate = { id: string; name: string; version_id: string; slots: string[] }

/** A part's slots. @throws Refusal bad_request saying what is wrong, and where. */
function slotsOf(part: 'html' | 'text', source: string): readonly string[] {
  const problem =
    textFault(source)?.problem ?? (utf8Bytes(source) > LARGEST_PART ? 'must be at most 1 MiB' : undefined)
  if (problem) throw new Refusal('bad_request', `${part} ${problem}`)
  try {
    return compileTemplate(source).slots
  } catch (error) {
    if (error instanceof TemplateFault) throw new Refusal('bad_request', `${part}: ${error.message}`)
    throw error
  }
}

function checkParts({ html, text }: { html: string; text: string }): string[] {
  if (html === '') throw new Refusal('bad_request', 'html must not be empty')
  return [...new Set([...slotsOf('html', html), ...slotsOf('text', text)])]
}

/** Saves a new template; `text` is '' when it has no plain-text part. @throws Refusal not_found, bad_request. */
export async function saveTemplate(
  { tx, now }: At,
  teamId: string,
  { name, html, text }: { name: string; html: string; text: string },
): Promise<SavedTemplate> {
  const problem = nameProblem(name)
  if (problem) throw new Refusal('bad_request', `name ${problem}`)
  const slots = checkParts({ html, text })
  await teamOrRefusal(tx, teamId)
  const id = uuidv7()
  const versionId = uuidv7()
  await insertTemplate(tx, teamId, { id, name, version_id: versionId }, now)
  const version = { team_id: teamId, id: versionId, template_id: id, html, body_text: text, slots }
  await insertVersion(tx, version, now)
  return { id, name, version_id: versionId, slots }
}

/** A new version; without `text` it keeps the text of the one before. @throws Refusal not_found, bad_request. */
export async function updateTemplate(
  { tx, now }: At,
  teamId: string,
  id: string,
  { html, text }: { html: string; text: string | undefined },
): Promise<SavedTemplate> {
  await teamOrRefusal(tx, teamId)
  const before = await currentVersion(tx, teamId, id)
  if (!before) throw new Refusal('not_found', `there is no template ${id} in this team`)
  const body_text = text ?? before.body_text
  const slots = checkParts({ html, text: body_text })
  const versionId = uuidv7()
  await insertVersion(tx, { team_id: teamId, id: versionId, template_id: id, html, body_text, slots }, now)
  const template = await setCurrentVersion(tx, teamId, { id, version_id: versionId }, now)
  if (!template) throw new Refusal('not_found', `there is no template ${id} in this team`)
  return { id, name: template.name, version_id: versionId, slots }
}
