/**
 * Calls functions with samples, to see their statements without their data. A sample replaces any argument: a
 * transaction, a row, a list of one item, a text. Its properties are samples as well, except those in VALUES.
 * Queries on it return samples.
 */
import { type SqlTag, sql } from 'slonik'
import { EMAIL } from '../../db/channels/email.sql.ts'

const UUID = '01980000-0000-7000-8000-000000000000'
export const AT = new Date('2026-01-01T00:00:00.000Z')

/** Properties whose value determines the statement, such as a channel's. */
const VALUES: Readonly<Record<string, unknown>> = {
  ...EMAIL,
  ...{ charge: sql.fragment`select`, jobs: sql.fragment`select` },
  ...{ endpoint_id: UUID, event_id: UUID, seen: '1:1:', send_at: AT.toISOString() },
  ...{ body: Buffer.from('x'), bytes: Buffer.from('x'), detail: 'x', event_key: 'x' },
  ...{ operator: false, sort: 'worst', what: 'failed' },
}

const METHODS: ReadonlySet<string> = new Set([
  ...['concat', 'every', 'filter', 'find', 'flatMap', 'forEach', 'includes', 'join', 'map'],
  ...['reduce', 'slice', 'some', 'toReversed', 'toSorted'],
])
const LISTS: ReadonlySet<string> = new Set(['any', 'many', 'anyFirst', 'manyFirst'])
const SINGLES: ReadonlySet<string> = new Set(['one', 'maybeOne', 'oneFirst', 'maybeOneFirst', 'exists'])

const samples = new WeakSet<object>()
const isSample = (value: unknown): boolean => typeof value === 'function' && samples.has(value)

/** Returns a sample's property, or a method's result. */
function propertyOf(key: string): unknown {
  const list = [sample()]
  if (LISTS.has(key)) return async () => list
  if (SINGLES.has(key)) return async () => sample()
  if (key === 'query') return async () => ({ rows: list, rowCount: 1 })
  if (key === 'transaction') return async (work: (tx: unknown) => unknown) => work(sample())
  if (METHODS.has(key)) return (Reflect.get(list, key) as () => unknown).bind(list)
  if (key === 'then') return undefined
  if (key === 'length' || key === 'size') return 1
  if (key === 'getTime') return () => AT.getTime()
  if (key === 'toISOString' || key === 'toJSON') return () => AT.toISOString()
  return Object.hasOwn(VALUES, key) ? VALUES[key] : sample()
}

/** Returns a sample. Its type fits every parameter. */
export function sample(): never {
  const made = new Proxy(() => {}, {
    apply: () => sample(),
    get: (_target, key) => {
      if (key === Symbol.toPrimitive) return (hint: string) => (hint === 'number' ? 1 : 'x')
      if (key === Symbol.iterator) return () => [sample()].values()
      return typeof key === 'string' ? propertyOf(key) : undefined
    },
  })
  samples.add(made)
  return made as never
}

/** Returns a value of an array or a row. */
const cell = (value: unknown): unknown => (Object(value) === value && !Buffer.isBuffer(value) ? 'x' : value)
const bytes = (value: unknown): unknown => (Buffer.isBuffer(value) ? value : Buffer.from('x'))
const plain = (value: unknown): unknown => (isSample(value) ? 'x' : value)
const plainList = (value: unknown): unknown[] => (isSample(value) ? ['x'] : (value as unknown[]).map(plain))

/** Lets slonik accept samples as values until `stop`. */
export function acceptSamples() {
  const real = { ...sql }
  type Build = (...args: never[]) => unknown
  const accept =
    (build: unknown, ...convert: ((value: unknown) => unknown)[]) =>
    (...args: unknown[]) =>
      (build as (...args: unknown[]) => unknown)(
        ...args.map((arg, index) => (convert[Math.min(index, convert.length - 1)] ?? plain)(arg)),
      )
  const same = (value: unknown) => value
  const tag = (build: unknown) => accept(build, same, plain)
  const tagOf =
    (make: unknown) =>
    (...args: unknown[]) =>
      tag((make as (...args: unknown[]) => Build)(...args))
  Object.assign(sql, {
    fragment: tag(real.fragment),
    unsafe: tag(real.unsafe),
    type: tagOf(real.type),
    prepared: tagOf(real.prepared),
    array: (values: unknown, type: unknown) =>
      accept(real.array, same)(plainList(values).map(type === 'bytea' ? bytes : cell), type),
    binary: accept(real.binary, bytes),
    identifier: accept(real.identifier, plainList),
    join: accept(real.join, plainList, same),
    literalValue: accept(real.literalValue),
    timestamp: accept(real.timestamp, (value) => (isSample(value) ? AT : value)),
    unnest: accept(real.unnest, (rows) => (rows as unknown[][]).map((each) => each.map(cell)), same),
  } satisfies Partial<Record<keyof SqlTag, unknown>>)
  return { stop: () => void Object.assign(sql, real) }
}

/** Calls a function with samples, and the returned function. Its errors don't matter. */
export async function callWithSamples(called: (...args: never[]) => unknown): Promise<void> {
  const args = Array.from({ length: 6 }, sample)
  try {
    const result = await called(...args)
    if (typeof result === 'function' && !isSample(result)) await result(...args)
  } catch {
    // A missing statement fails the test that lists them.
  }
}
