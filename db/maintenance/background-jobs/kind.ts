/** The definition of a kind of background job, and how a slice of a stored job is read and run. */
import type { AuditEntry, By } from '../../accounts/audit/record.ts'
import type { Secrets } from '../../process/secrets.ts'
import type { Producer } from '../../queue/producer.ts'
import type { BackgroundJobStep, OpenBackgroundJob } from './background-jobs.sql.ts'
import type { Reader } from './stored.ts'

export type BackgroundJobTools = {
  queue: Pick<Producer, 'enqueue' | 'reenqueue' | 'redrive'>
  /** Null if not requested. The CLI opens them for the kinds that need them. */
  secrets: Pick<Secrets, 'signatures' | 'sign'> | null
}

export type Slicing = By & BackgroundJobTools

/** A result whose parts are absent before the first slice. */
type Stored<R> = { [K in keyof R]?: R[K] | undefined }

/** A kind with its input `G`, its cursor `C` and its result `R`. */
type Kind<G extends object, C extends object, R extends object> = {
  /** Read what is stored. Null: a newer version stored it in another form. */
  given: Reader<G>
  cursor: Reader<C>
  result: Reader<Stored<R>>
  slice(
    at: Slicing,
    job: Omit<OpenBackgroundJob, 'given' | 'cursor' | 'result'> & {
      given: G
      cursor: C | null
      /** Empty in the first slice. */
      result: Stored<R>
    },
  ): Promise<BackgroundJobStep<C, R>>
  /** Its action in the audit log, if that is not the kind's name. */
  action?: string
  /** Null: nothing was changed. */
  entry(given: G, result: R): Pick<AuditEntry, 'subject' | 'detail'> | null
}

/** The result of a slice, with the audit entry after the last one. */
type Sliced = { step: BackgroundJobStep; entry: Omit<AuditEntry, 'team_id'> | null }

/** Adds `open`, which returns the next slice of a stored job, or null if only a newer version can read it. */
export const define = <G extends object, C extends object, R extends object>(kind: Kind<G, C, R>) => ({
  ...kind,
  open(job: OpenBackgroundJob): ((at: Slicing) => Promise<Sliced>) | null {
    const [given, result] = [kind.given(job.given), kind.result(job.result)]
    const cursor = job.cursor === null ? null : kind.cursor(job.cursor)
    if (given === null || result === null || (cursor === null && job.cursor !== null)) return null
    return async (at) => {
      const step = await kind.slice(at, { ...job, given, cursor, result })
      const entry = step.cursor === null ? kind.entry(given, step.result) : null
      return { step, entry: entry && { action: kind.action ?? job.kind, ...entry } }
    }
  },
})

/** The known total. At the end, the number done, because some rows may have been deleted before. */
export const totalOf = (
  done: number,
  { cursor }: { cursor: object | null },
  total: number | null,
): number | null => (cursor === null || total === null ? total && done : Math.max(total, done))
