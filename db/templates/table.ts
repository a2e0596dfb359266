/** Rows of templates and template_versions, and the queries over them. Versions are immutable. */
import { sql } from 'slonik'
import { array, type InferType, object, string } from 'yup'
import type { Tx } from '../pool.ts'

const versionRow = object({
  team_id: string().defined(),
  id: string().defined(),
  template_id: string().defined(),
  html: string().defined(),
  body_text: string().defined(),
  slots: array(string().defined()).defined(),
})
export type VersionRow = InferType<typeof versionRow>

export async function insertTemplate(
  tx: Tx,
  teamId: string,
  template: { id: string; name: string; version_id: string },
  now: Date,
): Promise<void> {
  const at = sql.timestamp(now)
  await tx.query(sql.unsafe`
    insert into templates (team_id, id, name, version_id, created_at, updated_at)
    values (${teamId}, ${template.id}, ${template.name}, ${template.version_id}, ${at}, ${at})`)
}

export async function insertVersion(tx: Tx, version: VersionRow, now: Date): Promise<void> {
  await tx.query(sql.unsafe`
    insert into template_versions (team_id, id, template_id, html, body_text, slots, created_at)
    values (${version.team_id}, ${version.id}, ${version.template_id}, ${version.html}, ${version.body_text},
      ${sql.array(version.slots, 'text')}, ${sql.timestamp(now)})`)
}

const templateRow = object({ id: string().defined(), name: string().defined() })

/** Makes a version the current one. @returns the template, or null when the team has none of this id. */
export async function setCurrentVersion(tx: Tx, teamId: string, id: string, versionId: string, now: Date) {
  return await tx.maybeOne(sql.type(templateRow)`
    update templates set version_id = ${versionId}, updated_at = ${sql.timestamp(now)}
    where team_id = ${teamId} and id = ${id} returning id, name`)
}

/** Versions by (team, id), in one statement. */
export async function versionsByIds(
  tx: Tx,
  refs: readonly { team_id: string; id: string }[],
): Promise<readonly VersionRow[]> {
  return await tx.any(sql.prepared('versions_by_ids', versionRow)`
    select team_id, id, template_id, html, body_text, slots from template_versions
    where (team_id, id) in (
      select * from ${sql.unnest(refs.map((ref) => [ref.team_id, ref.id]), ['uuid', 'uuid'])} as ref (team_id, id))`)
}
