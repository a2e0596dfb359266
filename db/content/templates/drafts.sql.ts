/** Queries on template_drafts. A template has at most one draft. */
import { sql } from 'slonik'
import { array, type InferType, string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { row } from '../../postgres/rows.ts'

const draftRow = row({
  /** Changes with each save. */
  id: string(),
  html: string(),
  text: string(),
  slots: array(string()),
  /** The current version when the draft was started. */
  version_id: string(),
  saved_by: string(),
  saved_at: string(),
})
export type DraftRow = InferType<typeof draftRow>

export const draftOf = (tx: Tx, teamId: string, templateId: string) =>
  tx.maybeOne(sql.type(draftRow)`
    select id, html, body_text as text, slots, version_id, saved_by, saved_at from template_drafts
    where team_id = ${teamId} and template_id = ${templateId}`)

const placeRow = row({ template_id: string() })

export const templatesWithDraft = (tx: Tx, teamId: string) =>
  tx.anyFirst(sql.type(placeRow)`
    select template_id from template_drafts where team_id = ${teamId}`)

export const upsertDraft = (
  tx: Tx,
  teamId: string,
  templateId: string,
  draft: Omit<DraftRow, 'saved_at'>,
  now: Date,
) =>
  tx.query(sql.unsafe`
    insert into template_drafts (team_id, template_id, id, html, body_text, slots, version_id, saved_by, saved_at)
    values (${teamId}, ${templateId}, ${draft.id}, ${draft.html}, ${draft.text}, ${sql.array(draft.slots, 'text')},
      ${draft.version_id}, ${draft.saved_by}, ${sql.timestamp(now)})
    on conflict (team_id, template_id) do update set
      id = excluded.id, html = excluded.html, body_text = excluded.body_text, slots = excluded.slots,
      version_id = excluded.version_id, saved_by = excluded.saved_by, saved_at = excluded.saved_at`)

export const deleteTemplateDraft = (tx: Tx, teamId: string, templateId: string) =>
  tx.query(sql.unsafe`
    delete from template_drafts where team_id = ${teamId} and template_id = ${templateId}`)
