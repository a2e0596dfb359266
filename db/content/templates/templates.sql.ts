/** Queries on templates and template_versions. Versions are immutable. */
import { sql } from 'slonik'
import { array, boolean, type InferType, number, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { row, rowsOf } from '../../postgres/rows.ts'

const versionRow = row({
  team_id: string(),
  id: string(),
  template_id: string(),
  html: string(),
  body_text: string(),
  slots: array(string()),
  /** True if its emails have List-Unsubscribe headers (DECISIONS: Unsubscribe link). */
  list_unsubscribe: boolean(),
  /** True if values in quoted attributes keep = and backticks. Versions created by 0.1.0 escape them. */
  keeps_equals: boolean(),
})
export type VersionRow = InferType<typeof versionRow>

/** Inserts a template without a version. @returns false if the name is in use. */
export async function insertTemplate(
  tx: Tx,
  teamId: string,
  template: { id: string; name: string; version_id: string },
  now: Date,
): Promise<boolean> {
  const at = sql.timestamp(now)
  const { rowCount } = await tx.query(sql.unsafe`
    insert into templates (team_id, id, name, version_id, created_at, updated_at)
    values (${teamId}, ${template.id}, ${template.name}, ${template.version_id}, ${at}, ${at})
    on conflict (team_id, name) do nothing`)
  return rowCount === 1
}

export const insertVersion = (
  tx: Tx,
  version: Omit<VersionRow, 'keeps_equals'> & { created_by: string },
  now: Date,
) =>
  tx.query(sql.unsafe`
    insert into template_versions (
      team_id, id, template_id, html, body_text, slots, list_unsubscribe, created_by, created_at, keeps_equals)
    values (${version.team_id}, ${version.id}, ${version.template_id}, ${version.html}, ${version.body_text},
      ${sql.array(version.slots, 'text')}, ${version.list_unsubscribe}, ${version.created_by},
      ${sql.timestamp(now)}, true)`)

const templateRow = row({ id: string(), name: string() })

export const templateName = (tx: Tx, teamId: string, id: string) =>
  tx.maybeOneFirst(sql.type(templateRow.pick(['name']))`
    select name from templates where team_id = ${teamId} and id = ${id}`)

export const setCurrentVersion = (
  tx: Tx,
  teamId: string,
  { id, version_id }: { id: string; version_id: string },
  now: Date,
) =>
  tx.query(sql.unsafe`
    update templates set version_id = ${version_id}, updated_at = ${sql.timestamp(now)}
    where team_id = ${teamId} and id = ${id}`)

export const versionsByIds = (tx: Tx, refs: readonly { team_id: string; id: string }[]) =>
  tx.any(sql.prepared('versions_by_ids', versionRow)`
    select team_id, id, template_id, html, body_text, slots, list_unsubscribe, keeps_equals from template_versions
    where (team_id, id) in (
      select * from ${rowsOf('ref', { team_id: 'uuid', id: 'uuid' }, refs)})`)

const currentRow = versionRow.concat(row({ name: string() }))
export type CurrentVersion = InferType<typeof currentRow>

/** Locks a template and returns its current version. Null if it doesn't exist. */
export const lockCurrentVersion = (tx: Tx, teamId: string, id: string) =>
  tx.maybeOne(sql.type(currentRow)`
    select t.name, v.team_id, v.id, v.template_id, v.html, v.body_text, v.slots, v.list_unsubscribe,
      v.keeps_equals
    from templates t join template_versions v on v.team_id = t.team_id and v.id = t.version_id
    where t.team_id = ${teamId} and t.id = ${id} for update of t`)

const listedRow = row({
  id: string(),
  name: string(),
  version_id: string(),
  slots: array(string()),
  list_unsubscribe: boolean(),
  created_at: string(),
  updated_at: string(),
})

/** Returns a team's templates with the variables of their current versions, oldest first. */
export const templatesOfTeam = (tx: Tx, teamId: string) =>
  tx.any(sql.type(listedRow)`
    select t.id, t.name, t.version_id, v.slots, v.list_unsubscribe, t.created_at, t.updated_at
    from templates t join template_versions v on v.team_id = t.team_id and v.id = t.version_id
    where t.team_id = ${teamId} order by t.id`)

const shownRow = listedRow.concat(row({ html: string(), text: string(), keeps_equals: boolean() }))

export type ShownTemplate = InferType<typeof shownRow>

/** Returns a template with the parts of its current version. Null if it doesn't exist. */
export const templateById = (tx: Tx, teamId: string, id: string) =>
  tx.maybeOne(sql.type(shownRow)`
    select t.id, t.name, t.version_id, v.slots, v.list_unsubscribe, v.html, v.body_text as text, v.keeps_equals,
      t.created_at, t.updated_at
    from templates t join template_versions v on v.team_id = t.team_id and v.id = t.version_id
    where t.team_id = ${teamId} and t.id = ${id}`)

const historyRow = row({
  id: string(),
  /** Its position among the template's versions, from 1. */
  number: number(),
  slots: array(string()),
  created_at: string(),
  created_by: string(),
})
export type ListedVersion = InferType<typeof historyRow>

/** Returns a template's versions without their parts, newest first. */
export const versionsOfTemplate = (tx: Tx, teamId: string, id: string, limit: number) =>
  tx.any(sql.type(historyRow)`
    select id, row_number() over (order by id) as number, slots, created_at, created_by from template_versions
    where team_id = ${teamId} and template_id = ${id} order by id desc limit ${limit}`)

const comparedRow = historyRow.concat(row({ html: string(), body_text: string() }))
export type ComparedVersion = InferType<typeof comparedRow>

export const versionsToCompare = (tx: Tx, teamId: string, id: string, versions: readonly string[]) =>
  tx.any(sql.type(comparedRow)`
    select v.id, v.slots, v.created_at, v.created_by, v.html, v.body_text, (
      select count(*) from template_versions o
      where o.team_id = v.team_id and o.template_id = v.template_id and o.id <= v.id) as number
    from template_versions v
    where v.team_id = ${teamId} and v.template_id = ${id} and v.id = any(${sql.array(versions, 'uuid')})`)

/** Renames a template. @returns the template, or null if it doesn't exist or the name is in use. */
export const renameTemplateRow = (tx: Tx, teamId: string, { id, name }: { id: string; name: string }) =>
  tx.maybeOne(sql.type(templateRow)`
    update templates set name = ${name} where team_id = ${teamId} and id = ${id} and not exists (
      select from templates other where other.team_id = ${teamId} and other.name = ${name} and other.id <> ${id})
    returning id, name`)

/**
 * Deletes a template, but not its versions, because emails need them. @returns the template, or null if it doesn't
 * exist.
 */
export const deleteTemplate = (tx: Tx, teamId: string, id: string) =>
  tx.maybeOne(sql.type(templateRow)`
    delete from templates where team_id = ${teamId} and id = ${id} returning id, name`)
