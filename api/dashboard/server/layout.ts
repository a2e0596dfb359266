/** Renders a view as an HTML page, with its navigation and notice, and prepares its sections for their partials. */
import type { Person } from '../../../db/accounts/members/sign-in.ts'
import type { Render } from '../../http/views.ts'
import type { Assets } from '../components/assets.ts'
import { BASE } from '../components/base.ts'
import { ICONS } from '../components/icons.ts'
import type { Alert, Form, Section, SectionOf, View } from '../components/section.ts'
import { cellReady, tableReady, withBreaks } from '../components/table.ts'
import { type ActionGroup, type FoldedForm, splitActions } from './action-menu.ts'
import { describeOn, formReady, type Rejected } from './form.ts'
import { navigation, places } from './nav.ts'
import type { Notice, PageTeam } from './page.ts'
import { isFrozen, withoutForms } from './read-only.ts'

export type Frame = {
  /** The path after /dashboard. */
  path: string
  person: Person | null
  team: PageTeam | null
  csrf: string
  notice: Notice | null
  /** The ETag of the page (fragment.ts). */
  tag: string
  /** A rejected form, which is shown again with the submitted values. */
  refused: Rejected | null
  asked?: string
  /** The filter of the list that the page was opened from. */
  list?: string | null
}

const SIGNS = { '+': 'add', '-': 'del', ' ': 'same', '…': 'calm' } as const

/** Texts of the marks in a checklist, for screen readers. */
const SAID = { good: 'fine', warn: 'to do', bad: 'a problem', plain: 'off' } as const

const isForm = (section: Section): section is FoldedForm => section.kind === 'form'

/** True for a section with fields. Their errors are also shown in the notice at the top. */
const isFilled = (section: Section): section is SectionOf<'form' | 'filter'> =>
  section.kind === 'form' || section.kind === 'filter'

/** True for a form that opens with a button next to the title. */
const isOpened = (section: Section): section is FoldedForm => isForm(section) && Boolean(section.folded)

const slug = (words: string): string =>
  words
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')

/** Assigns a stable ID to each section, so that the script can find it again after a refresh. */
function assignIds(sections: readonly Section[]): Map<Section, string> {
  const used = new Set<string>()
  return new Map(
    sections.map((section) => {
      const opener = isOpened(section) ? (section.title ?? section.submit) : (section.title ?? '')
      const base = section.id ?? slug(`${isOpened(section) ? 'act' : section.kind} ${opener}`)
      let id = base
      for (let count = 2; used.has(id); count += 1) id = `${base}-${count}`
      used.add(id)
      return [section, id]
    }),
  )
}

/** Ends the title of an alert with a period if a text follows. */
const alertReady = (alert: Alert): object => ({
  ...alert,
  isEnded: Boolean(alert.text) && (alert.at !== undefined || !/[.:?!]$/.test(alert.title)),
  folded: alert.folded?.map(alertReady),
})

function prepared(given: Section, id: string, frame: Frame): object {
  const section = { ...given, id }
  if (section.kind === 'form') {
    const { result } = section
    return { ...formReady(section, id, frame), result: result && prepared(result, result.id ?? '', frame) }
  }
  if (section.kind === 'filter') return formReady({ ...section, tone: 'quiet' }, id, frame)
  if (section.kind === 'actions') {
    const forms = section.forms?.map((form, at) => formReady(form, `${id}-${at}`, frame))
    return { ...section, forms }
  }
  if (section.kind === 'tiles') {
    const tiles = section.tiles.map(({ filled: percent, ...tile }) => ({
      ...tile,
      bar: percent === undefined ? null : { filled: percent },
    }))
    return { ...section, tiles }
  }
  if (section.kind === 'alerts') return { ...section, alerts: section.alerts.map(alertReady) }
  if (section.kind === 'table') return tableReady(section)
  if (section.kind === 'chart') return { ...section, table: section.table && tableReady(section.table) }
  if (section.kind === 'facts') {
    const facts = section.facts.map(({ label, cell }) => ({ label, cell: cellReady(cell, label) }))
    return { ...section, facts }
  }
  if (section.kind === 'checklist') {
    const checks = section.checks.map(({ label, cell, ...check }) => ({
      ...check,
      ...{ parts: label.split(/(?<=[:@._/-])/), said: SAID[check.tone] },
      cell: cell && { ...cellReady(cell), short: cell.short },
    }))
    return { ...section, checks }
  }
  if (section.kind === 'records') {
    const records = section.records.map((one) => ({
      ...one,
      state: cellReady(one.state),
      lines: one.lines.map((line) => ({ ...line, parts: withBreaks(line.value) })),
    }))
    return { ...section, records }
  }
  if (section.kind === 'timeline') {
    return { ...section, moments: section.moments.map((moment) => ({ ...moment, at: cellReady(moment.at) })) }
  }
  if (section.kind === 'difference') {
    return { ...section, lines: section.lines.map((line) => ({ ...line, name: SIGNS[line.sign] })) }
  }
  return section
}

/** Prepares the buttons next to the title, and the menu. `hasMain` tells if a button is black. */
function actionsReady(view: View, folded: readonly FoldedForm[], ids: Map<Section, string>, frame: Frame) {
  const { menu, ...shown } = splitActions(view.actions ?? {}, folded)
  const hasMain = shown.links.some(({ main }) => main) || shown.forms.some(({ tone }) => tone === undefined)
  const ready = (sections: ActionGroup['folded'], look: (place: number, isQuiet: boolean) => string) =>
    sections.map((section, place) => ({
      ...formReady({ ...section, id: ids.get(section) }, ids.get(section) ?? '', frame),
      opener: section.title ?? section.submit,
      look: look(place, section.folded !== true),
    }))
  const formsReady = (forms: readonly Form[], id: string) =>
    forms.map((form, at) => formReady(form, `${id}-${at}`, frame))
  const acts = ready(menu.folded, () => 'quiet')
  const count = menu.links.length + menu.forms.length + acts.length + menu.last.length
  const opened = ready(shown.folded, (place, isQuiet) => (place === 0 && !hasMain && !isQuiet ? '' : 'quiet'))
  return {
    hasMain: hasMain || opened.some(({ look }) => look === ''),
    actions: shown.links.length + shown.forms.length > 0 && {
      ...shown,
      forms: formsReady(shown.forms, 'buttons'),
      ...{ top: true, id: 'buttons' },
    },
    acts: opened,
    menu: count > 0 && {
      links: menu.links,
      forms: formsReady(menu.forms, 'menu'),
      acts,
      last: formsReady(menu.last, 'last'),
      open: acts.some((act) => 'open' in act && act.open),
    },
  }
}

const isLive = (section: Section): boolean => 'live' in section && section.live === true

export type Layout = (view: View, frame: Frame) => string

export const createLayout =
  (render: Render, { paths }: Assets): Layout =>
  (whole, frame) => {
    const { path, person, team, csrf, notice, refused } = frame
    const view = team && person && isFrozen(team, person) ? withoutForms(whole, refused) : whole
    const inside = person !== null && !view.narrow
    const { above = [], sections, aside = [], below = [] } = view
    const all = [...above, ...sections, ...aside, ...below]
    const ids = assignIds(all)
    const drawn = (some: readonly Section[]) =>
      some.flatMap((section) => (isOpened(section) ? [] : [prepared(section, ids.get(section) ?? '', frame)]))
    return render('layout', {
      ...view,
      base: BASE,
      heading: withBreaks(view.title),
      lead: view.lead && withBreaks(view.lead),
      icons: ICONS,
      css: paths['dashboard.css'],
      js: paths['dashboard.js'],
      person: person?.email,
      place: team?.name ?? (inside ? 'Operator' : ''),
      inside,
      places: inside ? places(person, team) : [],
      nav: inside ? navigation(path, person, team) : null,
      asked: frame.asked,
      teamId: team?.id,
      account: team ? `/account?team=${team.id}` : '/account',
      csrf,
      notice: notice && refused ? { ...notice, text: describeOn(all.filter(isFilled), refused) } : notice,
      alarming: notice?.tone === 'bad',
      suspended: team?.suspended,
      test: team?.test,
      // The URL of a page with a rejected form is the form's, which a refresh can't GET.
      live: refused === null && all.some(isLive),
      tag: frame.tag,
      ...actionsReady(view, all.filter(isOpened), ids, frame),
      above: drawn(above),
      sections: drawn(sections),
      aside: aside.length === 0 ? null : drawn(aside),
      below: drawn(below),
    })
  }
