/**
 * Shows and deletes templates. Accepted emails of a deleted template are still sent, because its versions are kept.
 */

import { type By, record } from '../../accounts/audit/record.ts'
import { requireTeam } from '../../accounts/teams/view.ts'
import { requestError } from '../../errors.ts'
import type { Tx } from '../../postgres/pool.ts'
import { TEXTS } from '../texts.ts'
import { deleteTemplate, templateById, versionsOfTemplate } from './templates.sql.ts'

const MAX_VERSIONS = 1_000

const unknown = (id: string) => requestError('not_found', TEXTS.noTemplate, { id })

/** Returns a template with its parts and its versions, newest first. @throws RequestError not_found. */
export async function showTemplate(tx: Tx, teamId: string, id: string) {
  await requireTeam(tx, teamId)
  const template = await templateById(tx, teamId, id)
  if (!template) throw unknown(id)
  const { keeps_equals: _, ...shown } = template
  return { ...shown, versions: await versionsOfTemplate(tx, teamId, id, MAX_VERSIONS) }
}

export async function removeTemplate(by: By, teamId: string, id: string) {
  await requireTeam(by.tx, teamId)
  const deleted = await deleteTemplate(by.tx, teamId, id)
  if (!deleted) throw unknown(id)
  await record(by, { team_id: teamId, action: 'template.delete', subject: id, detail: deleted.name })
  return deleted
}
