/**
 * What its people do of a suspended team: look at it. Promises: no form of a page is drawn that would be refused, so
 * that a page need not ask whether its team is suspended, but for buttons in cells of what viewers may press too; what
 * was typed into a form that was refused is kept. Pure.
 */
import type { Person } from '../../../db/accounts/members/sign-in.ts'
import type { Form, Section, View } from '../components/section.ts'
import type { Rejected } from './form.ts'
import type { PageTeam } from './page.ts'

/** Whether this person may change nothing of the team, whatever their role is. */
export const isFrozen = (
  { suspended }: Pick<PageTeam, 'suspended'>,
  { operator }: Pick<Person, 'operator'>,
): boolean => suspended && !operator

/** A view without the forms that change something of a team, but for the one that was just refused. */
export function withoutForms(view: View, refused: Rejected | null): View {
  const stays = ({ action, method }: Form): boolean =>
    method === 'get' || !action.startsWith('/teams/') || action === refused?.action
  const left = (sections: readonly Section[]): Section[] =>
    sections.flatMap((section): Section[] => {
      if (section.kind === 'form') return stays(section) ? [section] : []
      if (section.kind !== 'actions') return [section]
      const { links = [], forms = [] } = section
      const kept = forms.filter(stays)
      return links.length + kept.length > 0 ? [{ ...section, forms: kept }] : []
    })
  const { actions, sections, aside, below } = view
  return {
    ...view,
    actions: actions && { ...actions, forms: actions.forms?.filter(stays) },
    sections: left(sections),
    aside: aside && left(aside),
    below: below && left(below),
  }
}
