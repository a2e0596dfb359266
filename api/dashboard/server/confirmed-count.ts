/**
 * What was counted before a press: the form carries how many, and the moment (db/postgres/snapshot.sql.ts), so that the
 * press does no more than it says, and nothing to what has come to match since.
 */

import { RequestError } from '../../../db/errors.ts'
import type { Field } from '../components/section.ts'
import { TEXTS } from '../texts.ts'
import { hidden } from './builders.ts'

export type Counted = { most: number; seen: string }

export const countedWords = ({ most, seen }: Counted) => ({ total: String(most), seen })

export const countedFields = (counted: Counted): Field[] =>
  Object.entries(countedWords(counted)).map(([name, value]) => hidden(name, value))

/** What a form was counted to change. @throws RequestError bad_request where it does not say. */
export function countedOf(form: URLSearchParams): Counted {
  const most = Number(form.get('total') ?? Number.NaN)
  const seen = form.get('seen') ?? ''
  if (Number.isInteger(most) && most > 0 && most < 2 ** 31 && seen !== '') return { most, seen }
  throw new RequestError('bad_request', TEXTS.formOutOfDate)
}
