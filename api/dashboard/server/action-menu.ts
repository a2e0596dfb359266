/**
 * Splits the actions of a page into a menu and up to two buttons next to its title. The main action comes
 * first and is black. Destructive actions come last in the menu. Pure.
 */
import type { Actions, Form, Link, SectionOf } from '../components/section.ts'

export type FoldedForm = SectionOf<'form'>

type PageAction =
  | { kind: 'link'; link: Link }
  | { kind: 'form'; form: Form }
  | { kind: 'folded'; section: FoldedForm }

/** Maximum number of buttons outside the menu. */
const MAX_BUTTONS = 2

export type ActionGroup = { links: readonly Link[]; forms: readonly Form[]; folded: readonly FoldedForm[] }

/** `last` contains the destructive actions. */
type SplitActions = ActionGroup & { menu: ActionGroup & { last: readonly Form[] } }

const isMain = (action: PageAction): boolean =>
  action.kind === 'link'
    ? action.link.main === true
    : action.kind === 'form' && action.form.tone === undefined

/** True for a form that can open with the main button. */
const opensMain = (action: PageAction): boolean =>
  action.kind === 'folded' && action.section.folded !== 'quiet'

const isInMenu = (action: PageAction): boolean => {
  if (action.kind === 'link') return action.link.menu === true
  return action.kind === 'form' ? action.form.menu === true : action.section.folded === 'menu'
}

const grouped = (actions: readonly PageAction[]): ActionGroup => ({
  links: actions.flatMap((action) => (action.kind === 'link' ? [action.link] : [])),
  forms: actions.flatMap((action) => (action.kind === 'form' ? [action.form] : [])),
  folded: actions.flatMap((action) => (action.kind === 'folded' ? [action.section] : [])),
})

const quiet = (form: Form): Form => ({ ...form, tone: 'quiet' })

/** True for a destructive form, unless it is the next step. */
const isLast = ({ tone, menu }: Form): boolean => tone === 'danger' && menu !== false

/** Chooses the actions that are buttons. At most one is the main action. */
export function splitActions(
  { links = [], forms = [] }: Actions,
  folded: readonly FoldedForm[],
): SplitActions {
  const actions: PageAction[] = [
    ...links.map((link) => ({ kind: 'link' as const, link })),
    ...forms.flatMap((form) => (isLast(form) ? [] : [{ kind: 'form' as const, form }])),
    ...folded.map((section) => ({ kind: 'folded' as const, section })),
  ]
  const open = actions.filter((action) => !isInMenu(action))
  const main = open.find(isMain) ?? open.find(opensMain)
  const first = main ? [main] : []
  const rest = actions.filter((action) => action !== main)
  const last = forms.filter(isLast)
  // Up to two actions need no menu, unless one is a form that is risky or rarely used. Next to a main link, a form
  // of the menu isn't the next step.
  const isRare = main?.kind === 'link' && forms.some(({ menu }) => menu === true)
  const isShort =
    actions.length <= MAX_BUTTONS &&
    last.length === 0 &&
    !isRare &&
    folded.every((form) => form.folded !== 'menu')
  const buttons = [...first, ...rest.filter((action) => isShort || !isInMenu(action))].slice(0, MAX_BUTTONS)
  const shown = grouped(buttons)
  const menu = grouped(actions.filter((action) => !buttons.includes(action)))
  const others = (form: Form): Form =>
    (main?.kind === 'form' && main.form === form) || form.tone === 'danger' ? form : quiet(form)
  return {
    links: shown.links.map((link) => ({ ...link, main: main?.kind === 'link' && main.link === link })),
    forms: shown.forms.map(others),
    folded: shown.folded,
    menu: { ...menu, forms: menu.forms.map(quiet), last },
  }
}
