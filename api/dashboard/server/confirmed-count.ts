/**
 * Form fields with the number of rows that a bulk action was confirmed for, and the snapshot of that count
 * (db/postgres/snapshot.sql.ts). The action never changes more rows, or rows that matched later.
 */

import { RequestError } from '../../../db/errors.ts'
import type { Field } from '../components/section.ts'
import { TEXTS } from '../texts.ts'
import { hidden } from './builders.ts'

export type Counted = { most: number; seen: string }

export const countedValues = ({ most, seen }: Counted) => ({ total: String(most), seen })

export const countedFields = (counted: Counted): Field[] =>
  Object.entries(countedValues(counted)).map(([name, value]) => hidden(name, value))

/** Reads the confirmed count from a form. @throws RequestError bad_request if it is missing or invalid. */
export function readCounted(form: URLSearchParams): Counted {
  const most = Number(form.get('total') ?? Number.NaN)
  const seen = form.get('seen') ?? ''
  if (Number.isInteger(most) && most > 0 && most < 2 ** 31 && seen !== '') return { most, seen }
  throw new RequestError('bad_request', TEXTS.formOutOfDate)
}
