/**
 * A background job, begun by a person and done in slices: by the process that began it as far as one slice goes, by
 * workers beyond that, or wholly by the CLI.
 * Promises: each slice is one transaction with the cursor that it moves, so that the process that goes on after a kill
 * neither repeats nor leaves out anything; its line in the audit trail is written once, by the slice that ends it. Work
 * of a kind that only a newer version knows stays as it is. Must not know what a kind of work does (kinds.ts).
 */
import { type Actor, record } from '../../accounts/audit/record.ts'
import { Refusal } from '../../errors.ts'
import { type Database, isTooSlow, type Tx } from '../../postgres/pool.ts'
import { serviceTime } from '../../postgres/time.sql.ts'
import { idNow } from '../../process/ids.ts'
import { type Given, KINDS, type Kind, type WorkKind, type WorkTools } from './kinds.ts'
import { endWork, insertWork, lockWork, moveWork, type WorkRow } from './works.sql.ts'

type WorkDeps = WorkTools & { database: Database }

/** What somebody wants to be done. */
export type Wanted = { [K in WorkKind]: { kind: K; given: Given<K> } }[WorkKind] & {
  team_id: string | null
  actor: Actor
  /** How much there is to do, where that is known. */
  total?: number | null
  /** Its id, when something else is to have the same one. */
  id?: string
  /** Stores what the work is about, in the transaction that begins it. */
  store?: (tx: Tx, now: Date) => Promise<void>
}

async function begin(tx: Tx, { team_id, kind, given, actor, store, total, id = idNow() }: Wanted) {
  const now = await serviceTime(tx)
  await store?.(tx, now)
  await insertWork(tx, { id, team_id, kind, given, total: total ?? null, begun_by: actor }, now)
  return id
}

const isKnown = ({ kind }: Pick<WorkRow, 'kind'>): boolean => Object.hasOwn(KINDS, kind)

/** Does the next slice, of a kind that is known. @returns the work as it stands then; null when it was over already. */
async function slice(tx: Tx, tools: WorkTools, id: string): Promise<WorkRow | null> {
  const work = await lockWork(tx, id)
  if (!work || !isKnown(work)) return work
  const kind = KINDS[work.kind as WorkKind] as Kind<object, object>
  const now = await serviceTime(tx)
  const by = { tx, now, actor: work.begun_by }
  const step = await kind.slice({ ...tools, ...by }, work)
  const entry = step.cursor === null ? kind.entry(work.given, step.result) : null
  if (entry) await record(by, { team_id: work.team_id, action: work.kind, ...entry })
  return moveWork(tx, id, step, now)
}

/**
 * Begins work and does its first slice; the rest is for the workers.
 * @returns it as it stands, finished when it was small. @throws Refusal when it cannot be begun.
 */
export async function beginWork({ database, ...tools }: WorkDeps, wanted: Wanted): Promise<WorkRow> {
  const start = (withSlice: boolean) =>
    database.transaction(async (tx) => {
      const id = await begin(tx, wanted)
      const work = withSlice ? await slice(tx, tools, id) : null
      if (work?.finished_at) return { ...work, id }
      await tools.queue.enqueue(tx, 'do-work', [{ work_id: id }])
      return { ...(work ?? begun(wanted)), id }
    })
  try {
    return await start(true)
  } catch (error) {
    if (!isTooSlow(error)) throw error
    return start(false)
  }
}

/** Work before its first slice. */
const begun = ({ team_id, kind, actor, total = null }: Wanted): Omit<WorkRow, 'id'> => ({
  team_id,
  kind,
  done: 0,
  total,
  result: {},
  fault: null,
  begun_by: actor,
  begun_at: '',
  finished_at: null,
})

/** What a slice leaves to do: nothing, more, or all of it to a newer worker, which knows the kind. */
export type Left = 'nothing' | 'more' | 'to_newer'

const leftOf = (work: WorkRow | null): Left => {
  if (work === null || work.finished_at !== null) return 'nothing'
  return isKnown(work) ? 'more' : 'to_newer'
}

/**
 * Does the next slice of work in a transaction of its own, with `after` in it. Work that is refused ends with the
 * refusal's words.
 */
export async function continueWork(
  { database, ...tools }: WorkDeps,
  id: string,
  after: (tx: Tx, left: Left) => Promise<void>,
): Promise<void> {
  try {
    await database.transaction(async (tx) => after(tx, leftOf(await slice(tx, tools, id))))
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    await database.transaction(async (tx) => {
      await endWork(tx, id, error.message, await serviceTime(tx))
      await after(tx, 'nothing')
    })
  }
}

/**
 * Begins work and does all of it here; if this process dies, the sweep hands the rest to the workers.
 * @returns what came of it. @throws Refusal when it cannot be done.
 */
export async function doWork<R extends object>(deps: WorkDeps, wanted: Wanted): Promise<R> {
  const { database, ...tools } = deps
  const id = await database.transaction((tx) => begin(tx, wanted))
  for (;;) {
    const work = await database
      .transaction((tx) => slice(tx, tools, id))
      .catch(async (error: unknown) => {
        if (error instanceof Refusal) await endWork(database, id, error.message, await serviceTime(database))
        throw error
      })
    if (work === null || work.finished_at !== null) return (work?.result ?? {}) as R
  }
}
