/**
 * Hides the forms of a suspended team, which its members can only read. Pages only have to check for it in
 * table cells with buttons for viewers. A form that was just rejected is still shown. Pure.
 */
import type { Person } from '../../../db/accounts/members/sign-in.ts'
import type { Form, Section, View } from '../components/section.ts'
import type { Rejected } from './form.ts'
import type { PageTeam } from './page.ts'

/** True if the user can't change anything in the team, whatever their role. */
export const isFrozen = (
  { suspended }: Pick<PageTeam, 'suspended'>,
  { operator }: Pick<Person, 'operator'>,
): boolean => suspended && !operator

/** Removes the forms that change the team, except the one that was just rejected. */
export function withoutForms(view: View, refused: Rejected | null): View {
  const stays = ({ action, method }: Form): boolean =>
    method === 'get' || !action.startsWith('/teams/') || action === refused?.action
  const left = (sections: readonly Section[]): Section[] =>
    sections.flatMap((section): Section[] => {
      if (section.kind === 'form') return stays(section) ? [section] : []
      if (section.kind === 'table') return [{ ...section, picks: undefined }]
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
