/**
 * Stores WhatsApp templates as the provider's own object. Templates that we can't send are stored too, and marked.
 */

import { type Caller, record } from '../../accounts/audit/record.ts'
import { requireTeam } from '../../accounts/teams/view.ts'
import { invalidField, RequestError, requestError } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import { idNow } from '../../process/ids.ts'
import { isObject } from '../../validation/fields.ts'
import { pick } from '../../validation/keys.ts'
import { codePoints, textFault } from '../../validation/strings.ts'
import { TEMPLATE_STATES, type TemplateState, templateState } from './status.ts'
import { toShape } from './template.ts'
import {
  insertWhatsappTemplate,
  setTemplateStatus,
  type TemplateContent,
  type WhatsappTemplateRow,
  whatsappTemplatesOfTeam,
} from './templates.sql.ts'
import { TEXTS } from './texts.ts'

const LARGEST_DEFINITION = 256 * 1024
const LONGEST_NAME = 512

/** A template as the CLI prints it. Pure. */
export const templateView = (row: WhatsappTemplateRow) => ({
  ...pick(row, 'id', 'name', 'language', 'category', 'status', 'slots'),
  supported: row.unsupported === null,
  ...pick(row, 'unsupported', 'fault', 'created_at', 'updated_at', 'synced_at'),
})

/** A template with the name of each variable, for the CLI. Pure. */
const templateShown = (row: WhatsappTemplateRow) => ({
  ...templateView(row),
  ...pick(row, 'quality', 'announced_category'),
  parameters: row.slots.map((key) => ({ key, name: row.parts?.names[key] ?? null })),
})

/** @throws RequestError not_found */
export async function showWhatsappTemplate(tx: Tx, teamId: string, id: string) {
  await requireTeam(tx, teamId)
  const row = (await whatsappTemplatesOfTeam(tx, teamId)).find((each) => each.id === id)
  if (!row) throw new RequestError('not_found', `there is no template ${id} in this team`)
  return templateShown(row)
}

export type WhatsappTemplateView = ReturnType<typeof templateView>

function field(definition: Readonly<Record<string, unknown>>, name: string): string {
  const value = definition[name]
  if (typeof value === 'string' && value !== '' && codePoints(value) <= LONGEST_NAME) return value
  throw invalidField(name, `must be a string of 1 to ${LONGEST_NAME} characters`)
}

/** @throws RequestError bad_request naming the valid states. */
function requireState(word: unknown): TemplateState {
  const state = typeof word === 'string' ? templateState(word) : null
  if (state) return state
  throw invalidField('status', `must be one of ${TEMPLATE_STATES.join(', ')}`)
}

/** Reads the provider's template object. Without a status it is pending. @throws RequestError bad_request */
export function readTemplate(definition: unknown): TemplateContent {
  if (!isObject(definition)) throw new RequestError('bad_request', TEXTS.templateNotObject)
  const fault = textFault(definition)
  if (fault) throw new RequestError('bad_request', fault)
  if (JSON.stringify(definition).length > LARGEST_DEFINITION) {
    throw new RequestError('bad_request', TEXTS.templateTooLarge)
  }
  if (!Array.isArray(definition.components)) {
    throw invalidField('components', 'must be an array')
  }
  return {
    ...toShape(definition),
    name: field(definition, 'name'),
    language: field(definition, 'language'),
    category: typeof definition.category === 'string' ? definition.category : null,
    status: requireState(definition.status ?? 'pending'),
    definition,
  }
}

/** Stores a new template, approved for a test team. @throws RequestError not_found for the team, bad_request */
export async function createWhatsappTemplate(by: Caller, teamId: string, definition: unknown) {
  const { tx, now } = by
  const given = readTemplate(definition)
  const { test } = await requireTeam(tx, teamId)
  const content = test ? { ...given, status: 'approved' as const } : given
  const { name, language } = content
  const row = await insertWhatsappTemplate(tx, teamId, idNow(), content, now)
  if (!row) throw requestError('bad_request', TEXTS.whatsappTemplateExists, { name, language })
  await record(by, { team_id: teamId, action: 'whatsapp-template.create', subject: name, detail: row.id })
  return templateView(row)
}

/** Sets a template's state manually. @throws RequestError not_found, bad_request */
export async function setWhatsappTemplateStatus(by: Caller, teamId: string, id: string, word: string) {
  const { tx, now } = by
  const status = requireState(word)
  await requireTeam(tx, teamId)
  const row = await setTemplateStatus(tx, teamId, id, status, now)
  if (!row) throw requestError('not_found', TEXTS.noTemplate, { id })
  await record(by, { team_id: teamId, action: 'whatsapp-template.status', subject: id, detail: word })
  return templateView(row)
}
