/** Runs SQL text as pg-boss's connections do. */
import { sql } from 'slonik'
import type { Tx } from '../../db/postgres/pool.ts'
import type { Run } from '../../db/queue/pgboss.sql.ts'

export const runOn =
  (tx: Tx): Run =>
  async (text, values = []) => {
    const { rows } = await tx.query({ ...sql.unsafe`select`, sql: text, values: values as never })
    return { rows: [...rows] as Record<string, unknown>[] }
  }
