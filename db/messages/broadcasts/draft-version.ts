/**
 * What a person has seen of a broadcast before they press: what is saved or started is that, or it is refused and asked
 * again. Pure. Promises: nobody overwrites or starts what they have not seen.
 */

import { fill } from '../../fill.ts'
import { changedMeanwhile } from '../../validation/mark.ts'
import { TEXTS } from '../texts.ts'
import type { BroadcastRow } from './broadcasts.sql.ts'

/** `updated_at`: of the broadcast. `template_version_id`: of what it would send. `audience` null: none was counted. */
export type Seen = { updated_at: string; template_version_id: string | null; audience: number | null }

/** @throws RequestError invalid_state when the broadcast is another than was seen. */
export function assertSameDraft({ updated_at }: BroadcastRow, seen: Pick<Seen, 'updated_at'> | undefined) {
  if (seen && seen.updated_at !== updated_at) throw changedMeanwhile(TEXTS.broadcastChanged)
}

/** @throws RequestError invalid_state when something else would be sent than was seen. */
export function assertSameTemplate(versionId: string | null, seen: Seen | undefined): void {
  if (seen && seen.template_version_id !== versionId) throw changedMeanwhile(TEXTS.templateChanged)
}

/** @throws RequestError invalid_state when it would go to more or fewer people than was seen. */
export function assertSameAudience(audience: number, seen: Pick<Seen, 'audience'> | undefined): void {
  if (!seen || seen.audience === null || seen.audience === audience) return
  const contacts = audience === 1 ? '1 contact' : `${audience} contacts`
  throw changedMeanwhile(fill(TEXTS.audienceChanged, { contacts, before: seen.audience }))
}
