/** Copies the suppressions of contacts that workers and pages of version 0.1.0 write while they run. */
import { copyNext } from '../../db/audience/suppressions/copy.ts'
import type { WorkerDeps } from '../deps.ts'

const COPY_BATCH = 500

export async function copySuppressions({ database, clock, log }: WorkerDeps): Promise<void> {
  let copied = 0
  for (let more = true; more; ) {
    const { checked } = await database.transaction((tx) => copyNext(tx, COPY_BATCH, clock()))
    copied += checked
    more = checked === COPY_BATCH
  }
  if (copied > 0) log.info({ copied }, 'copied suppressions stored by an older version')
}
