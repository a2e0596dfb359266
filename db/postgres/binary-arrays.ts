/**
 * Encodes arrays of parameters in PostgreSQL's binary format. In the text format, pg escapes each value and the
 * server reads it byte by byte, which is a fifth of the time of a batch. pg encodes the values that have no encoding
 * here.
 */

type Item = Readonly<Record<string, unknown>>
/** Appends a value. @returns false if it has no encoding here */
type Writer = (value: unknown) => boolean

const SCRATCH_BYTES = 65_536
/** A larger scratch isn't kept. */
const MAX_SCRATCH_BYTES = 1_048_576
/** The encoded arrays, up to `end`. */
let scratch = Buffer.allocUnsafe(SCRATCH_BYTES)
let end = 0

/** Reserves more bytes, because Buffer.write would cut a text off. */
function reserve(bytes: number): void {
  if (end + bytes <= scratch.length) return
  const larger = Buffer.allocUnsafe(2 * (end + bytes))
  scratch.copy(larger, 0, 0, end)
  scratch = larger
}

/** Of a UTF-16 unit in UTF-8. */
const MAX_UNIT_BYTES = 3

function writeText(text: string): true {
  reserve(MAX_UNIT_BYTES * text.length)
  end += scratch.write(text, end)
  return true
}

const isWithin = (value: unknown, bits: number): value is number =>
  Number.isSafeInteger(value) && Math.abs((value as number) + 0.5) < 2 ** (bits - 1)

function writeInt8(value: unknown): boolean {
  if (!isWithin(value, 64)) return false
  const high = Math.floor(value / 2 ** 32)
  scratch.writeInt32BE(high, end)
  end = scratch.writeUInt32BE(value - high * 2 ** 32, end + 4)
  return true
}

/** PostgreSQL's times are microseconds since then. */
const EPOCH = Date.UTC(2000)

function writeTime(value: unknown): boolean {
  const at = new Date(value instanceof Date || typeof value === 'string' ? value : Number.NaN)
  const time = at.getTime()
  if (Number.isNaN(time)) return false
  // Date drops parts that are finer than milliseconds, and takes 30 February.
  if (typeof value === 'string' && at.toISOString() !== value) return false
  return writeInt8((time - EPOCH) * 1_000)
}

const UUID = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/i

function writeUuid(value: unknown): boolean {
  if (typeof value !== 'string' || !UUID.test(value)) return false
  end += scratch.write(value.replaceAll('-', ''), end, 'hex')
  return true
}

function writeBytes(value: unknown): boolean {
  if (!Buffer.isBuffer(value)) return false
  reserve(value.length)
  end += value.copy(scratch, end)
  return true
}

/** Writes values that pass `isOf`. `write` returns the offset after the value. */
const fixed =
  <T>(isOf: (value: unknown) => value is T, write: (value: T) => number): Writer =>
  (value) => {
    if (!isOf(value)) return false
    end = write(value)
    return true
  }

/** By type, with its OID. */
const WRITERS: Readonly<Record<string, [oid: number, Writer]>> = {
  bool: [
    16,
    fixed(
      (value) => typeof value === 'boolean',
      (value) => scratch.writeInt8(value ? 1 : 0, end),
    ),
  ],
  bytea: [17, writeBytes],
  int8: [20, writeInt8],
  int2: [
    21,
    fixed(
      (value) => isWithin(value, 16),
      (value) => scratch.writeInt16BE(value, end),
    ),
  ],
  int4: [
    23,
    fixed(
      (value) => isWithin(value, 32),
      (value) => scratch.writeInt32BE(value, end),
    ),
  ],
  text: [25, (value) => typeof value === 'string' && writeText(value)],
  json: [114, (value) => writeText(JSON.stringify(value))],
  float8: [
    701,
    fixed(
      (value) => typeof value === 'number',
      (value) => scratch.writeDoubleBE(value, end),
    ),
  ],
  timestamptz: [1184, writeTime],
  uuid: [2950, writeUuid],
  jsonb: [
    3802,
    (value) => {
      // The version of the format.
      end = scratch.writeInt8(1, end)
      return writeText(JSON.stringify(value))
    },
  ],
}

/** At least the header of an array, or a value that isn't text with its length. */
const FIXED_BYTES = 32
const LENGTH_BYTES = 4
const OF_NULL = -1

/** Appends an array of one dimension. @returns the bytes' place, or null if a value has no encoding here */
function writeArray([oid, write]: [number, Writer], items: readonly Item[], column: string) {
  reserve(FIXED_BYTES)
  const start = end
  const dimensions = items.length === 0 ? 0 : 1
  scratch.writeInt32BE(dimensions, start)
  scratch.writeInt32BE(items.some((item) => (item[column] ?? null) === null) ? 1 : 0, start + 4)
  end = scratch.writeInt32BE(oid, start + 8)
  if (dimensions === 1) {
    const first = 1
    end = scratch.writeInt32BE(first, scratch.writeInt32BE(items.length, end))
  }
  for (const item of items) {
    reserve(FIXED_BYTES)
    const value = item[column] ?? null
    const at = end
    end += LENGTH_BYTES
    if (value !== null && !write(value)) {
      end = start
      return null
    }
    scratch.writeInt32BE(value === null ? OF_NULL : end - at - LENGTH_BYTES, at)
  }
  return { start, end }
}

/** Encodes each column of the items as an array. Null if pg has to encode it. */
export function encodeColumns(
  columns: readonly (readonly [name: string, type: string])[],
  items: readonly Item[],
): (Buffer | null)[] {
  end = 0
  const places = columns.map(([name, type]) => {
    const writer = WRITERS[type]
    return writer ? writeArray(writer, items, name) : null
  })
  const bytes = Buffer.from(scratch.subarray(0, end))
  if (scratch.length > MAX_SCRATCH_BYTES) scratch = Buffer.allocUnsafe(SCRATCH_BYTES)
  return places.map((place) => place && bytes.subarray(place.start, place.end))
}
