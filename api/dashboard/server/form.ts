/**
 * Forms made ready for their views: ids, what was typed before a refusal, and the refusal's words under the fields that
 * they are about, the first of which gets the focus. Pure.
 */

import { headed } from '../components/cell.ts'
import type { Field, Form } from '../components/section.ts'
import { filled, LIST } from './list.ts'

/** A form that was refused. @param words why, as the page says it. */
export type Refused = { action: string; form: URLSearchParams; words: string }

const plain = (words: string): string =>
  words
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, ' ')
    .trim()

/**
 * The field that a refusal is about: the one whose name or label it begins with, whose value it quotes, or the only
 * one that there is. Of a label that explains itself, what stands before the explanation.
 */
function faultyField(fields: readonly Field[], { form, words }: Omit<Refused, 'action'>): Field | undefined {
  const own = fields.filter(({ type }) => type !== 'hidden')
  const said = `${plain(words)} `
  const begins = (name = ''): boolean => name !== '' && said.startsWith(`${plain(name)} `)
  const quoted = ({ name }: Field): boolean => {
    const value = form.get(name)?.trim() ?? ''
    return value !== '' && words.includes(JSON.stringify(value).slice(0, 200))
  }
  return (
    own.find(({ name }) => begins(name.replace(/_id$/, ''))) ??
    own.find(({ name }) => begins(name)) ??
    own.find(({ label }) => begins(label)) ??
    own.find(({ label }) => begins(label.split(/[:(]/)[0])) ??
    own.find(quoted) ??
    (own.length === 1 ? own[0] : undefined)
  )
}

export const asSent = (fields: readonly Field[], form: URLSearchParams): Field[] => filled(fields, form, true)

/** A refusal of several fields, one by one: `a is wrong; b is, too`, or `a, b and c are required`. */
function clausesOf(words: string): string[] {
  const clauses = words.split('; ').flatMap((clause) => {
    const [, list] = /^(.+) are required\.?$/.exec(clause) ?? []
    return list?.split(/, | and /).map((name) => `${name} is required`) ?? [clause]
  })
  return clauses.length === 1 ? [words] : clauses.map((clause) => `${headed(clause).replace(/\.$/, '')}.`)
}

/** Names that nobody would say: `template_id`, `value.0`, `q`. */
const NO_WORD = /[_.]|^.$/

/**
 * A fault that begins with its field's name, as the label has it: `URL must …`, never `Url must …`; `Template is
 * required`, never `Template_id …`. Of a label that begins with the name, no more than that.
 */
function spelt(words: string, { name, label }: Field): string {
  const rest = words.slice(name.length)
  if (words.slice(0, name.length).toLowerCase() !== name.toLowerCase() || /^\w/.test(rest)) return words
  const head = label.slice(0, name.length)
  if (head.toLowerCase() === name.toLowerCase()) return head + rest
  const [shown = ''] = label.split(/[:(]/)
  return NO_WORD.test(name) && shown.trim() !== '' ? shown.trim() + rest : words
}

/** The words of a refusal, with the names of these fields as their labels have them. */
export function wordsWith(fields: readonly Field[], refused: Omit<Refused, 'action'>): string {
  const clauses = refused.words.split('; ').map((words) => {
    const field = faultyField(fields, { ...refused, words })
    return field ? spelt(words, field) : words
  })
  return clauses.join('; ')
}

/** The words of a refusal on a page with these forms. */
export const wordsOn = (forms: readonly Form[], refused: Refused): string =>
  forms
    .filter(({ action }) => action === refused.action)
    .reduce((words, { fields }) => wordsWith(fields, { ...refused, words }), refused.words)

function faultsOf(fields: readonly Field[], refused: Refused): Map<string, string> {
  const faults = new Map<string, string>()
  for (const words of clausesOf(refused.words)) {
    const field = faultyField(fields, { ...refused, words })
    if (field && !faults.has(field.name)) faults.set(field.name, spelt(words, field))
  }
  return faults
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
    box: field.type === 'checks' ? 'checkbox' : 'radio',
    isSelect: field.type === 'select',
    isTextarea: field.type === 'textarea',
  }
}

/** What a form changes leads back to a page that still knows its list. */
const withList = (action: string, list: string): string =>
  `${action}${action.includes('?') ? '&' : '?'}${new URLSearchParams({ [LIST]: list })}`

/** Adds what a form's view needs. @param id begins the ids of its fields. */
export function formReady<F extends Form & { further?: readonly Field[] | undefined }>(
  form: F,
  id: string,
  { refused, list = null }: { refused: Refused | null; list?: string | null },
) {
  const again = refused !== null && refused.action === form.action ? refused : null
  const all = [...form.fields, ...(form.further ?? [])]
  const faults = again ? faultsOf(all, again) : new Map<string, string>()
  const first = all.find(({ name }) => faults.has(name))?.name
  const ready = (fields: readonly Field[]) =>
    (again ? filled(fields, again.form, true) : fields).map((field) => ({
      ...fieldReady(field, id, faults.get(field.name), field.name === first),
      form: form.joins?.form,
    }))
  const isSet = form.further?.some(({ value, options }) =>
    options ? options.some((option) => option.selected && option.value !== '') : Boolean(value),
  )
  return {
    ...form,
    action: list && form.method === 'post' ? withList(form.action, list) : form.action,
    ...(again || isSet ? { open: true } : {}),
    kept: again !== null,
    isPost: form.method === 'post',
    isDanger: form.tone === 'danger',
    fields: ready(form.fields),
    further: form.further && ready(form.further),
  }
}
