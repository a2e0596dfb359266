/**
 * Saves and renames email templates. A change of the text creates a new version, so that emails keep the version they
 * were accepted with. A stored template compiles, is within the limits, and lists its variables in order of
 * appearance.
 */

import { type By, record } from '../../accounts/audit/record.ts'
import { requireTeam } from '../../accounts/teams/view.ts'
import { invalidField, requestError } from '../../errors.ts'
import type { At } from '../../postgres/pool.ts'
import { idNow } from '../../process/ids.ts'
import { decodeVariables } from '../../validation/attributes.ts'
import { checkName } from '../../validation/name.ts'
import { compileTemplate, TemplateFault, UNSUBSCRIBE_SLOT } from '../../validation/slots.ts'
import { LARGEST_PART, MAX_VARIABLES, textFault, utf8Bytes } from '../../validation/strings.ts'
import { TEXTS } from '../texts.ts'
import {
  type CurrentVersion,
  insertTemplate,
  insertVersion,
  lockCurrentVersion,
  renameTemplateRow,
  setCurrentVersion,
} from './templates.sql.ts'

type SavedTemplate = {
  id: string
  name: string
  version_id: string
  slots: string[]
  list_unsubscribe: boolean
  /** The variables that were percent-encoded in links. */
  decoded: string[]
}

/** The parts of a version. `text` is '' without a plain-text part. */
type Parts = { html: string; text: string; list_unsubscribe: boolean }

/** Returns the variables of a part. @throws RequestError bad_request with the reason and the line. */
function readSlots(part: 'html' | 'text', source: string): readonly string[] {
  const problem =
    textFault(source)?.problem ?? (utf8Bytes(source) > LARGEST_PART ? 'must be at most 1 MiB' : undefined)
  if (problem) throw invalidField(part, problem)
  try {
    return compileTemplate(source).slots
  } catch (error) {
    if (error instanceof TemplateFault) throw invalidField(part, TEXTS.badTemplate, { reason: error.message })
    throw error
  }
}

/**
 * Returns the variables of all parts. List-Unsubscribe headers need the link like a variable in the text.
 * @throws RequestError bad_request for invalid parts.
 */
export function slotsOfParts({ html, text, list_unsubscribe }: Parts): string[] {
  if (html === '') throw invalidField('html', 'must not be empty')
  const asked = list_unsubscribe ? [UNSUBSCRIBE_SLOT] : []
  const slots = [...new Set([...readSlots('html', html), ...readSlots('text', text), ...asked])]
  if (slots.length <= MAX_VARIABLES) return slots
  throw requestError('bad_request', TEXTS.tooManyVariables, { most: MAX_VARIABLES })
}

/** @throws RequestError not_found, bad_request for invalid parts, or a name that is invalid or in use. */
export async function saveTemplate(
  by: By,
  teamId: string,
  {
    name,
    list_unsubscribe = false,
    ...parts
  }: Partial<Parts> & Omit<Parts, 'list_unsubscribe'> & { name: string },
): Promise<SavedTemplate> {
  const { tx, now } = by
  checkName(name)
  const { html, decoded } = decodeVariables(parts.html)
  const body_text = parts.text
  const slots = slotsOfParts({ html, text: body_text, list_unsubscribe })
  await requireTeam(tx, teamId)
  const id = idNow()
  const versionId = idNow()
  if (!(await insertTemplate(tx, teamId, { id, name, version_id: versionId }, now))) {
    throw invalidField('name', TEXTS.templateExists, { name: JSON.stringify(name) })
  }
  const version = {
    team_id: teamId,
    id: versionId,
    template_id: id,
    html,
    body_text,
    slots,
    list_unsubscribe,
    created_by: by.actor,
  }
  await insertVersion(tx, version, now)
  await record(by, { team_id: teamId, action: 'template.create', subject: name, detail: id })
  return { id, name, version_id: versionId, slots, list_unsubscribe, decoded }
}

/** @throws RequestError bad_request for a name that is invalid or in use, not_found. */
export async function renameTemplate(by: By, teamId: string, id: string, name: string): Promise<void> {
  checkName(name)
  if (!(await renameTemplateRow(by.tx, teamId, { id, name }))) {
    await requireCurrentVersion(by, teamId, id)
    throw invalidField('name', TEXTS.templateExists, { name: JSON.stringify(name) })
  }
  await record(by, { team_id: teamId, action: 'template.rename', subject: id, detail: name })
}

/** Locks a template and returns its current version. @throws RequestError not_found. */
export async function requireCurrentVersion({ tx }: At, teamId: string, id: string): Promise<CurrentVersion> {
  await requireTeam(tx, teamId)
  const current = await lockCurrentVersion(tx, teamId, id)
  if (current) return current
  throw requestError('not_found', TEXTS.noTemplate, { id })
}

/** Stores a new version and makes it the current one. @throws RequestError bad_request for invalid parts. */
export async function storeVersion(
  { tx, now, actor }: By,
  teamId: string,
  { name, template_id, html, body_text, list_unsubscribe }: Omit<CurrentVersion, 'id' | 'slots' | 'team_id'>,
): Promise<Omit<SavedTemplate, 'decoded'>> {
  const slots = slotsOfParts({ html, text: body_text, list_unsubscribe })
  const id = idNow()
  const version = { team_id: teamId, id, template_id, html, body_text, slots, list_unsubscribe }
  await insertVersion(tx, { ...version, created_by: actor }, now)
  await setCurrentVersion(tx, teamId, { id: template_id, version_id: id }, now)
  return { id: template_id, name, version_id: id, slots, list_unsubscribe }
}

/** Absent parts don't change. */
type TemplateChange = { html?: string; text?: string | undefined; list_unsubscribe?: boolean }

/**
 * Creates a new current version, unless nothing differs. @throws RequestError not_found, bad_request for invalid
 * parts.
 */
export async function updateTemplate(by: By, teamId: string, id: string, change: TemplateChange) {
  const before = await requireCurrentVersion(by, teamId, id)
  const { name, slots } = before
  const { html, decoded } =
    change.html === undefined ? { html: before.html, decoded: [] } : decodeVariables(change.html)
  const { text: body_text = before.body_text } = change
  const { list_unsubscribe = before.list_unsubscribe } = change
  if (
    html === before.html &&
    body_text === before.body_text &&
    list_unsubscribe === before.list_unsubscribe
  ) {
    return { id, name, version_id: before.id, slots, list_unsubscribe, decoded }
  }
  const saved = await storeVersion(by, teamId, { ...before, html, body_text, list_unsubscribe })
  await record(by, { team_id: teamId, action: 'template.update', subject: id })
  return { ...saved, decoded }
}
