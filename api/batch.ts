/** What the three batch endpoints share: an id or a refusal for each item, in request order (contract §2.4). */
import { Refusal } from '../db/errors.ts'
import { envelope } from './errors.ts'

export { settle } from '../db/errors.ts'

/** What became of one item: the id it was accepted under, or why it was not. */
export type BatchItem = string | Refusal

/** The answer's body. A per-item rate_limited has no Retry-After: there is no header to put it in. */
export const presentBatch = (items: readonly BatchItem[]) => ({
  data: items.map((item, index) =>
    item instanceof Refusal ? { index, error: envelope(item) } : { index, id: item },
  ),
})
