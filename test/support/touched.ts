/** Counts the buffers that statements touch, which depend only on the data and the plan. */
import { type QuerySqlToken, sql } from 'slonik'
import { mixed, object } from 'yup'
import type { Database, Tx } from '../../db/postgres/pool.ts'
import type { Test } from './tap.ts'

type PlanNode = {
  'Node Type': string
  'Relation Name'?: string
  'Index Name'?: string
  'CTE Name'?: string
  'Function Name'?: string
  'Subplan Name'?: string
  'Shared Hit Blocks': number
  'Shared Read Blocks': number
  'Total Cost': number
  'Actual Rows': number
  'Actual Loops': number
  Plans?: PlanNode[]
}

const planRow = object({ 'QUERY PLAN': mixed<[{ Plan: PlanNode }]>().defined() })

const QUERIES = new Set([
  'any',
  'anyFirst',
  'exists',
  'many',
  'maybeOne',
  'maybeOneFirst',
  'one',
  'oneFirst',
  'query',
])

const nodesOf = (plan: PlanNode): PlanNode[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)]

const buffersOf = (node: PlanNode): number => node['Shared Hit Blocks'] + node['Shared Read Blocks']

/**
 * Returns the number of buffers that a statement touched. A change whose rows no other part reads runs last,
 * and EXPLAIN doesn't include it in the top node.
 */
function touchedBy(plan: PlanNode): number {
  const read = new Set(nodesOf(plan).map((node) => `CTE ${node['CTE Name']}`))
  const after = (plan.Plans ?? []).filter(
    (node) => node['Node Type'] === 'ModifyTable' && !read.has(node['Subplan Name'] ?? ''),
  )
  return [plan, ...after].reduce((sum, node) => sum + buffersOf(node), 0)
}

/**
 * Runs some work and explains each of its statements, without lasting changes.
 * @param prepare runs first in the same transaction, unexplained.
 * @returns the buffers that its statements touched in total, the nodes of their plans, and its result.
 */
export async function touched<Result>(
  database: Database,
  work: (tx: Tx) => Promise<Result>,
  prepare: (tx: Tx) => Promise<unknown> = async () => {},
) {
  const nodes: PlanNode[] = []
  const results: Result[] = []
  let buffers = 0
  const undone = new Error('undone')
  const undo = async (tx: Tx, run: (tx: Tx) => Promise<unknown>): Promise<void> => {
    await tx
      .transaction(async (inner) => {
        await run(inner)
        throw undone
      })
      .catch((error: unknown) => {
        if (error !== undone) throw error
      })
  }
  const explainOnce = async (tx: Tx, query: QuerySqlToken): Promise<PlanNode[]> => {
    const text = `explain (analyze, buffers, timing off, format json) ${query.sql}`
    let plans: PlanNode[] = []
    await undo(tx, async (inner) => {
      const row = await inner.one({ ...sql.type(planRow)`select`, sql: text, values: query.values })
      plans = row['QUERY PLAN'].map(({ Plan: plan }) => plan)
    })
    return plans
  }
  const explain = async (tx: Tx, query: QuerySqlToken): Promise<void> => {
    // The first run in a session also reads the system catalog.
    await explainOnce(tx, query)
    for (const plan of await explainOnce(tx, query)) {
      buffers += touchedBy(plan)
      nodes.push(...nodesOf(plan))
    }
  }
  const watched = (tx: Tx): Tx =>
    new Proxy(tx, {
      get(target, name, receiver) {
        const method = Reflect.get(target, name, receiver)
        if (name === 'transaction')
          return (handler: (inner: Tx) => Promise<unknown>) =>
            target.transaction((inner) => handler(watched(inner)))
        if (!QUERIES.has(String(name))) return method
        return async (query: QuerySqlToken) => {
          await explain(target, query)
          return method.call(target, query)
        }
      },
    })
  await undo(database, async (tx) => {
    await prepare(tx)
    results.push(await work(watched(tx)))
  })
  return { buffers, nodes, result: results[0] as Result }
}

/** Does the same, and fails unless the work touched fewer buffers than `most`. */
export async function readsFewer<Result>(
  t: Test,
  database: Database,
  most: number,
  work: (tx: Tx) => Promise<Result>,
  of = '',
) {
  const { buffers, ...rest } = await touched(database, work)
  t.ok(buffers < most, `${buffers} of ${most} buffers ${of}`)
  return rest
}
