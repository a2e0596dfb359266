/**
 * Asks before a form is carried out, where no script has asked: a page with the form's question, what it sent, and a
 * way back. Promises: nothing of what was sent is lost or shown. Must not know any page.
 */
import { addressWith } from './list.ts'
import type { PageRequest } from './page.ts'
import type { Field, View } from './section.ts'

/** Fields that belong to the page that a form stands on, not to what it sends. */
const OWN = ['csrf', 'question', 'confirmed']

/** What a form sent, to be sent once more. */
const carried = (form: URLSearchParams): Field[] =>
  [...form]
    .filter(([name]) => !OWN.includes(name))
    .map(([name, value]) => ({ name, label: '', type: 'hidden', value }))

/** The question of the form that was sent. @param cancel where to go instead. */
export const questionView = (request: PageRequest, cancel: string): View => ({
  title: request.form.get('question') ?? '',
  narrow: true,
  sections: [
    {
      kind: 'form',
      action: addressWith(request, {}),
      method: 'post',
      fields: [...carried(request.form), { name: 'confirmed', label: '', type: 'hidden', value: 'yes' }],
      submit: 'Confirm',
    },
    { kind: 'actions', links: [{ href: cancel, label: 'Cancel' }] },
  ],
})
