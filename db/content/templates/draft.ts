/**
 * Drafts of templates: saved, published as a version, or discarded. Each template has one draft, shared by the team's
 * members. A draft or published version that the user hasn't seen is never published or overwritten.
 */

import { type By, record } from '../../accounts/audit/record.ts'
import { RequestError, requestError } from '../../errors.ts'
import { idNow } from '../../process/ids.ts'
import { decodeVariables } from '../../validation/attributes.ts'
import { TEXTS } from '../texts.ts'
import { type DraftRow, deleteTemplateDraft, draftOf, upsertDraft } from './drafts.sql.ts'
import { requireCurrentVersion, slotsOfParts, storeVersion } from './save.ts'

/** `seen` is the ID of the draft that the user edited, or of the current version without one. */
type DraftChange = { html: string; text: string; seen: string }

/** The draft and the current version that the user saw. */
type SeenDraft = { draft: string; version: string }

/**
 * Saves a draft. If the text is the published one, the draft is deleted.
 * @returns the current draft or null, and the variables that were decoded in links.
 * @throws RequestError not_found, bad_request for invalid parts, or if the draft isn't the one in `seen`.
 */
export async function saveDraft(
  by: By,
  teamId: string,
  templateId: string,
  { text, seen, ...change }: DraftChange,
): Promise<{ draft: { id: string } | null; decoded: string[] }> {
  const { html, decoded } = decodeVariables(change.html)
  const current = await requireCurrentVersion(by, teamId, templateId)
  const before = await draftOf(by.tx, teamId, templateId)
  const { list_unsubscribe } = current
  const slots = slotsOfParts({ html, text, list_unsubscribe })
  const there = before ?? { html: current.html, text: current.body_text }
  if (html === there.html && text === there.text) return { draft: before, decoded }
  if (seen !== (before?.id ?? current.id)) throw new RequestError('bad_request', TEXTS.savedByOther)
  if (html === current.html && text === current.body_text) {
    await discard(by, teamId, templateId)
    return { draft: null, decoded }
  }
  const version_id = before?.version_id ?? current.id
  const draft = { id: idNow(), html, text, slots, version_id, saved_by: by.actor }
  await upsertDraft(by.tx, teamId, templateId, draft, by.now)
  await record(by, { team_id: teamId, action: 'template.draft', subject: templateId })
  return { draft, decoded }
}

async function discard(by: By, teamId: string, templateId: string): Promise<void> {
  await deleteTemplateDraft(by.tx, teamId, templateId)
  await record(by, { team_id: teamId, action: 'template.discard', subject: templateId })
}

const noDraft = () => new RequestError('bad_request', TEXTS.noDraft)

/** Returns the draft of a locked template. @throws RequestError bad_request if it isn't the one that the user saw. */
async function requireSeenDraft(by: By, teamId: string, templateId: string, seen: string): Promise<DraftRow> {
  const draft = await draftOf(by.tx, teamId, templateId)
  if (!draft) throw noDraft()
  if (draft.id === seen) return draft
  throw requestError('bad_request', TEXTS.draftChanged, { who: draft.saved_by })
}

/**
 * @throws RequestError not_found, bad_request if the draft or the current version isn't the one that the user saw.
 */
export async function publishDraft(by: By, teamId: string, templateId: string, seen: SeenDraft) {
  const current = await requireCurrentVersion(by, teamId, templateId)
  const { html, text } = await requireSeenDraft(by, teamId, templateId, seen.draft)
  if (current.id !== seen.version) throw new RequestError('bad_request', TEXTS.publishedSince)
  const saved = await storeVersion(by, teamId, { ...current, html, body_text: text })
  await deleteTemplateDraft(by.tx, teamId, templateId)
  await record(by, { team_id: teamId, action: 'template.publish', subject: templateId })
  return saved
}

/** Deletes the draft. @throws RequestError not_found, bad_request if it isn't the one that the user saw. */
export async function discardTemplateDraft(by: By, teamId: string, templateId: string, seen: string) {
  await requireCurrentVersion(by, teamId, templateId)
  await requireSeenDraft(by, teamId, templateId, seen)
  await discard(by, teamId, templateId)
}
