/** Prepares forms for views. A rejected one has the submitted values and an error under each invalid field. Pure. */

import type { FieldError, RequestError } from '../../../db/errors.ts'
import { headed } from '../components/cell.ts'
import type { Field, Form, Section, View } from '../components/section.ts'
import { filled, LIST } from './list.ts'

export type Rejected = { action: string; form: URLSearchParams; error: Reason }

export type Reason = Pick<RequestError, 'message' | 'fields'>

export const asSent = (fields: readonly Field[], form: URLSearchParams): Field[] => filled(fields, form, true)

/** True for a field or a part of it, such as `to[3]`. @param path of the invalid field */
export const isWithin = (path: string, name: string): boolean =>
  path === name || path.startsWith(`${name}[`) || path.startsWith(`${name}.`)

const findField = (fields: readonly Field[], { field }: FieldError): Field | undefined =>
  fields.find(({ type, name }) => type !== 'hidden' && isWithin(field, name))

/** Writes the sentence about a field by its label, without the explanation in the label. */
const describeByLabel = ({ label }: Field, { problem }: FieldError): string =>
  `${label.split(/[:(]/, 1).join('').trim()} ${problem}.`

/** Writes why a form with these fields was rejected, each field by its label. */
export const describeByLabels = (fields: readonly Field[], { message, fields: errors }: Reason): string => {
  const known = errors.map((error) => ({ error, field: findField(fields, error) }))
  return errors.length === 0
    ? message
    : known
        .map(({ error, field }) =>
          field ? describeByLabel(field, error) : `${headed(error.field)} ${error.problem}.`,
        )
        .join(' ')
}

type AnyForm = Form & { further?: readonly Field[] | undefined }

const allFields = ({ fields, further = [] }: AnyForm): Field[] => [...fields, ...further]

/** Describes why one of these forms was rejected. */
export const describeOn = (forms: readonly AnyForm[], { action, error }: Rejected): string =>
  describeByLabels(forms.filter((form) => form.action === action).flatMap(allFields), error)

/** Returns the error under each invalid field. A form with a single field shows any error there. */
function findFaults(fields: readonly Field[], error: Reason): Map<string, string> {
  const faults = new Map<string, string>()
  for (const each of error.fields) {
    const field = findField(fields, each)
    if (field && !faults.has(field.name)) faults.set(field.name, describeByLabel(field, each))
  }
  const [only, ...others] = fields.filter(({ type }) => type !== 'hidden')
  if (faults.size === 0 && only && others.length === 0) faults.set(only.name, error.message)
  return faults
}

/** Types of fields that users choose or never see. */
const NOT_TYPED: readonly Field['type'][] = ['hidden', 'file', 'select', 'checks', 'radios']

/** Lists text fields with their labels, one per line. The form submits this as `labels`. */
const labelLines = (fields: readonly Field[]): string =>
  fields
    .filter(({ type }) => !NOT_TYPED.includes(type))
    .map(({ name, label }) => `${name} ${label.replace(/\s+/g, ' ')}`)
    .join('\n')

/** Returns the text fields of a submitted form with their labels. */
function labelsIn(form: URLSearchParams): [name: string, label: string][] {
  const lines = (form.get('labels') ?? '').split(/\r?\n/)
  return lines
    .filter((line) => line.includes(' '))
    .map((line) => [line.slice(0, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)])
}

const listForms = ({ actions, sections, aside = [], below = [] }: View): AnyForm[] =>
  [...sections, ...aside, ...below].reduce<AnyForm[]>(
    (forms, section) => {
      if (section.kind === 'form') forms.push(section)
      if (section.kind === 'actions') forms.push(...(section.forms ?? []))
      return forms
    },
    [...(actions?.forms ?? [])],
  )

/** More characters than both parts of a template can have. They are rendered in 0.1 seconds. */
const MAX_LOST = 2_200_000

/** Shows submitted text of fields that the page no longer has, so that it can be copied. */
export function lostText(view: View, { action, form }: Pick<Rejected, 'action' | 'form'>): Section[] {
  const known = new Set(
    listForms(view)
      .filter((one) => one.action === action)
      .flatMap(({ fields }) => fields.map(({ name }) => name)),
  )
  const lost = labelsIn(form).flatMap(([name, title]): Section[] => {
    const code = known.has(name) ? '' : form.getAll(name).join('\n')
    return code.trim() === '' ? [] : [{ kind: 'code', title, code }]
  })
  const length = lost.reduce((sum, section) => sum + (section.kind === 'code' ? section.code.length : 0), 0)
  const isLong = length > MAX_LOST
  const words = isLong
    ? 'Your input is too long to show here. Go back in your browser to find it in the form.'
    : 'This page no longer has these fields. Your input is kept here, so that you can copy it.'
  if (lost.length === 0) return []
  return [{ kind: 'text', title: 'Your input', paragraphs: [words] }, ...(isLong ? [] : lost)]
}

const fieldReady = (field: Field, form: string, fault: string | undefined, first: boolean) => {
  const id = `${form}.${field.name}`
  const isChoice = field.type === 'checks' || field.type === 'radios'
  const described = [fault === undefined ? '' : `${id}-fault`, field.hint === undefined ? '' : `${id}-hint`]
  return {
    ...field,
    id,
    fault,
    described: described.join(' ').trim(),
    autofocus: first || field.autofocus,
    isHidden: field.type === 'hidden',
    isChoice,
    // The hint is needed to understand the choices.
    leads: field.type === 'radios' && field.hint !== undefined,
    box: field.type === 'checks' ? 'checkbox' : 'radio',
    isSelect: field.type === 'select',
    isTextarea: field.type === 'textarea',
  }
}

/** Adds the list's filter to a form's URL, so that the page after it can still link back to the list. */
const withList = (action: string, list: string): string =>
  `${action}${action.includes('?') ? '&' : '?'}${new URLSearchParams({ [LIST]: list })}`

/** Prepares a form for its view. @param id the prefix of its field IDs. */
export function formReady<F extends AnyForm>(
  form: F,
  id: string,
  { refused, list = null }: { refused: Rejected | null; list?: string | null },
) {
  const again = refused !== null && refused.action === form.action ? refused : null
  const all = allFields(form)
  const faults = again ? findFaults(all, again.error) : new Map<string, string>()
  // A select of a filter can't show the invalid value, so its error is only above the page.
  if (form.method === 'get') for (const { name, type } of all) if (type === 'select') faults.delete(name)
  const first = all.find(({ name }) => faults.has(name))?.name
  const lists = new Map<Field['offers'], string>()
  const ready = (fields: readonly Field[]) =>
    (again ? filled(fields, again.form, true) : fields).map((field) => {
      const { offers } = field
      const shared = lists.get(offers)
      const list = shared ?? `${id}.${field.name}-offers`
      if (offers) lists.set(offers, list)
      return {
        ...fieldReady(field, id, faults.get(field.name), field.name === first),
        ...(offers?.length ? { list, offers: shared === undefined && offers } : {}),
        form: form.joins?.form,
      }
    })
  return {
    ...form,
    action: list && form.method === 'post' ? withList(form.action, list) : form.action,
    // A rejected filter is shown without the chips of its further parts.
    ...(again
      ? { open: form.further?.some(({ name }) => faults.has(name) || again.form.get(name)) ?? true }
      : {}),
    kept: again !== null,
    isPost: form.method === 'post',
    labels: form.method === 'post' && labelLines(all),
    fields: ready(form.fields),
    further: form.further && ready(form.further),
  }
}
