/**
 * A view as a whole HTML page: layout, navigation, notice, and the sections made ready for their partials.
 * Must not know any page's content.
 */
import type { Person } from '../../../db/accounts/people/sign-in.ts'
import type { Assets } from '../drawn/assets.ts'
import { ICONS } from '../drawn/icons.ts'
import type { Section, View } from '../drawn/section.ts'
import { cellReady, parted, tableReady } from '../drawn/table.ts'
import type { Render } from '../drawn/views.ts'
import { formReady, type Refused } from './form.ts'
import { navigation, places } from './nav.ts'
import type { Notice, PageTeam } from './page.ts'

/** What a page stands in. */
export type Frame = {
  /** After /dashboard. */
  path: string
  person: Person | null
  team: PageTeam | null
  /** The token of the session's forms. */
  csrf: string
  notice: Notice | null
  /** A form that was refused: it is shown again with what was typed. */
  refused: Refused | null
  /** What was searched for, in the field of every page. */
  asked?: string
  /** The filter of the list that the page was opened from. */
  list?: string | null
}

const SIGNS = { '+': 'add', '-': 'del', ' ': 'same' } as const

type FormSection = Extract<Section, { kind: 'form' }>

/** A form; a folded one has its title and its note where it is opened. */
function formSection(section: FormSection, index: number, frame: Frame): object {
  const ready = { ...formReady(section, index * 100, frame), unfolded: section.open }
  if (!section.folded) return ready
  const { title, note, submit } = section
  return { ...ready, title: undefined, note: undefined, summary: title ?? submit, inner: note }
}

/** A section with what its partial cannot work out for itself. */
function prepared(section: Section, index: number, frame: Frame): object {
  if (section.kind === 'form') return formSection(section, index, frame)
  if (section.kind === 'filter') return formReady(section, index * 100, frame)
  if (section.kind === 'actions') {
    const forms = section.forms?.map((form, at) => formReady(form, index * 100 + at, frame))
    return { ...section, forms }
  }
  if (section.kind === 'tiles') {
    const tiles = section.tiles.map(({ filled: percent, ...tile }) => ({
      ...tile,
      meter: percent === undefined ? null : { filled: percent },
    }))
    return { ...section, tiles }
  }
  if (section.kind === 'table') return tableReady(section)
  if (section.kind === 'facts') {
    const facts = section.facts.map(({ label, cell }) => ({ label, cell: cellReady(cell, label) }))
    return { ...section, facts }
  }
  if (section.kind === 'timeline') {
    return { ...section, moments: section.moments.map((moment) => ({ ...moment, at: cellReady(moment.at) })) }
  }
  if (section.kind === 'difference') {
    return { ...section, lines: section.lines.map((line) => ({ ...line, name: SIGNS[line.sign] })) }
  }
  return section
}

const isLive = (section: Section): boolean => 'live' in section && section.live === true

/** Draws a page. */
export type Layout = (view: View, frame: Frame) => string

/** Makes the one that draws pages. */
export const createLayout =
  (render: Render, { paths }: Assets): Layout =>
  (view, frame) => {
    const { person, team, csrf, notice } = frame
    const inside = person !== null && !view.narrow
    const { sections, aside = [] } = view
    const ready = [...sections, ...aside].map((section, index) => prepared(section, index, frame))
    return render({
      ...view,
      heading: parted(view.title),
      lead: view.lead && parted(view.lead),
      icons: ICONS,
      css: paths['dashboard.css'],
      js: paths['dashboard.js'],
      person: person?.email,
      place: team?.name ?? (inside ? 'Operator' : ''),
      inside,
      places: inside ? places(person, team) : [],
      nav: inside ? navigation(frame) : null,
      asked: frame.asked,
      teamId: team?.id,
      account: team ? `/account?team=${team.id}` : '/account',
      csrf,
      notice,
      suspended: team?.suspended,
      live: [...sections, ...aside].some(isLive),
      actions: view.actions && prepared(view.actions, ready.length, frame),
      sections: ready.slice(0, sections.length),
      aside: aside.length === 0 ? null : ready.slice(sections.length),
    })
  }
