/**
 * A view as a whole HTML page: layout, navigation, notice, and the sections made ready for their partials.
 * Must not know any page's content.
 */
import type { Person } from '../../../db/people/sign-in.ts'
import type { Assets } from '../drawn/assets.ts'
import type { Field, Form, Section, View } from '../drawn/section.ts'
import type { Render } from '../drawn/views.ts'
import { filled } from './list.ts'
import { navigation, places } from './nav.ts'
import type { Notice, Seat } from './page.ts'

/** What a page stands in. */
export type Frame = {
  /** After /dashboard. */
  path: string
  person: Person | null
  team: Seat | null
  /** The token of the session's forms. */
  csrf: string
  notice: Notice | null
  /** A form that was refused: it is shown again with what was typed. */
  refused: { action: string; form: URLSearchParams } | null
}

const preparedField = (field: Field, form: number) => ({
  ...field,
  id: `f${form}-${field.name}`,
  isHidden: field.type === 'hidden',
  isChecks: field.type === 'checks',
  isSelect: field.type === 'select',
  isTextarea: field.type === 'textarea',
})

function preparedForm<F extends Form>(form: F, index: number, { refused }: Frame) {
  const again = refused !== null && refused.action === form.action
  const fields = again ? filled(form.fields, refused.form, true) : form.fields
  return {
    ...form,
    ...(again ? { open: true } : {}),
    isPost: form.method === 'post',
    fields: fields.map((field) => preparedField(field, index)),
  }
}

const SIGNS = { '+': 'add', '-': 'del', ' ': 'same' } as const

/** A section with what its partial cannot work out for itself. */
function prepared(section: Section, index: number, frame: Frame): object {
  if (section.kind === 'form' || section.kind === 'filter') return preparedForm(section, index * 100, frame)
  if (section.kind === 'actions') {
    const forms = section.forms?.map((form, at) => preparedForm(form, index * 100 + at, frame))
    return { ...section, forms }
  }
  if (section.kind === 'tiles') {
    const tiles = section.tiles.map(({ filled: percent, ...tile }) => ({
      ...tile,
      meter: percent === undefined ? null : { filled: percent },
    }))
    return { ...section, tiles }
  }
  // On a narrow screen a row reads as a card, unless figures alone follow its name.
  if (section.kind === 'table') {
    return { ...section, cards: section.columns.slice(1).some(({ number }) => !number) }
  }
  if (section.kind === 'difference') {
    return { ...section, lines: section.lines.map((line) => ({ ...line, name: SIGNS[line.sign] })) }
  }
  return section
}

/** Draws a page. */
export type Layout = (view: View, frame: Frame) => string

/** Makes the one that draws pages. */
export const createLayout =
  (render: Render, { paths }: Assets): Layout =>
  (view, frame) => {
    const { person, team, csrf, notice } = frame
    const inside = person !== null && !view.narrow
    return render({
      ...view,
      css: paths['dashboard.css'],
      js: paths['dashboard.js'],
      person: person?.email,
      place: team?.name ?? (inside ? (person.operator ? 'Operator' : 'Teams') : ''),
      places: inside ? places(person, team) : [],
      nav: inside ? navigation(frame) : [],
      csrf,
      notice,
      suspended: team?.suspended,
      sections: view.sections.map((section, index) => prepared(section, index, frame)),
    })
  }
