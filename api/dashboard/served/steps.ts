/**
 * A form that goes through several pages, a step each: what the other steps hold travels along unseen, so nothing is
 * stored before all of it is, and nothing is lost on the way. Must not know any page.
 */
import type { Field } from '../drawn/section.ts'
import { filled } from './list.ts'
import { hidden } from './made.ts'

/** A field in the steps that do not show it. */
function unseen({ name, type, value = '', options }: Field): Field[] {
  if (options)
    return options.filter(({ selected }) => selected).map((option) => hidden(name, option.value, true))
  // A field of one line would not have sent line breaks.
  return [hidden(name, type === 'textarea' ? value : value.replace(/[\r\n]/g, ''), true)]
}

/** The fields of all steps as the page of one of them has them. @param sent what the form says so far, if anything. */
export const fieldsAt = <S extends string>(
  steps: Readonly<Record<S, readonly Field[]>>,
  step: S,
  sent: URLSearchParams | null,
): Field[] =>
  Object.entries<readonly Field[]>(steps).flatMap(([each, fields]) => {
    const own = sent ? filled(fields, sent, true) : fields
    return each === step ? own : own.flatMap(unseen)
  })
