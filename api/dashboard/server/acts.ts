/**
 * Splits the actions of a page into a menu and up to two buttons next to its title. The main action comes
 * first and is black. Destructive actions come last in the menu. Pure.
 */
import type { Actions, Form, Link, Section } from '../components/section.ts'

export type FoldedForm = Extract<Section, { kind: 'form' }>

type Act =
  | { kind: 'link'; link: Link }
  | { kind: 'form'; form: Form }
  | { kind: 'folded'; section: FoldedForm }

/** Maximum number of buttons outside the menu. */
const MAX_BUTTONS = 2

export type Acts = { links: readonly Link[]; forms: readonly Form[]; folded: readonly FoldedForm[] }

/** `last` contains the destructive actions. */
type SplitActs = Acts & { saves: Actions['saves']; menu: Acts & { last: readonly Form[] } }

const isMain = (act: Act): boolean =>
  act.kind === 'link' ? act.link.main === true : act.kind === 'form' && act.form.tone === undefined

const isInMenu = (act: Act): boolean => {
  if (act.kind === 'link') return act.link.menu === true
  return act.kind === 'form' ? act.form.menu === true : act.section.folded === 'menu'
}

const grouped = (acts: readonly Act[]): Acts => ({
  links: acts.flatMap((act) => (act.kind === 'link' ? [act.link] : [])),
  forms: acts.flatMap((act) => (act.kind === 'form' ? [act.form] : [])),
  folded: acts.flatMap((act) => (act.kind === 'folded' ? [act.section] : [])),
})

const quiet = (form: Form): Form => ({ ...form, tone: 'quiet' })

/** Chooses the actions that are buttons. At most one is the main action. */
export function splitActs(
  { saves, links = [], forms = [] }: Actions,
  folded: readonly FoldedForm[],
): SplitActs {
  const acts: Act[] = [
    ...links.map((link) => ({ kind: 'link' as const, link })),
    ...forms.flatMap((form) => (form.tone === 'danger' ? [] : [{ kind: 'form' as const, form }])),
    ...folded.map((section) => ({ kind: 'folded' as const, section })),
  ]
  const open = acts.filter((act) => !isInMenu(act))
  const main = saves ? undefined : (open.find(isMain) ?? open.find(({ kind }) => kind === 'folded'))
  const first = main ? [main] : []
  const most = saves ? MAX_BUTTONS - 1 : MAX_BUTTONS
  const buttons = [...first, ...open.filter((act) => act !== main)].slice(0, most)
  const shown = grouped(buttons)
  const menu = grouped(acts.filter((act) => !buttons.includes(act)))
  const others = (form: Form): Form => (main?.kind === 'form' && main.form === form ? form : quiet(form))
  return {
    saves,
    links: shown.links.map((link) => ({ ...link, main: main?.kind === 'link' && main.link === link })),
    forms: shown.forms.map(others),
    folded: shown.folded,
    menu: { ...menu, forms: menu.forms.map(quiet), last: forms.filter(({ tone }) => tone === 'danger') },
  }
}
