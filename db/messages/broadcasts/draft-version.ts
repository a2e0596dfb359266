/** Compares a user's version of a broadcast with its current state, so that nothing unseen is overwritten or sent. */

import { fill } from '../../fill.ts'
import { changedMeanwhile } from '../../validation/mark.ts'
import { TEXTS } from '../texts.ts'
import type { BroadcastRow } from './broadcasts.sql.ts'

/** The broadcast's `updated_at`, the ID of the template version, and the audience, or null if it wasn't counted. */
export type Seen = { updated_at: string; template_version_id: string | null; audience: number | null }

/** @throws RequestError invalid_state if the draft has changed since. */
export function assertSameDraft({ updated_at }: BroadcastRow, seen: Pick<Seen, 'updated_at'> | undefined) {
  if (seen && seen.updated_at !== updated_at) throw changedMeanwhile(TEXTS.broadcastChanged)
}

/** @throws RequestError invalid_state if another version would be sent than was seen. */
export function assertSameTemplate(versionId: string | null, seen: Seen | undefined): void {
  if (seen && seen.template_version_id !== versionId) throw changedMeanwhile(TEXTS.templateChanged)
}

/** @throws RequestError invalid_state if the audience has a different size than the user has seen. */
export function assertSameAudience(audience: number, seen: Pick<Seen, 'audience'> | undefined): void {
  if (!seen || seen.audience === null || seen.audience === audience) return
  const contacts = audience === 1 ? '1 contact' : `${audience} contacts`
  throw changedMeanwhile(fill(TEXTS.audienceChanged, { contacts, before: seen.audience }))
}
