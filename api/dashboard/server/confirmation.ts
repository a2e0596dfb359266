/**
 * Asks before a form is carried out that destroys or changes much, and where its session ended before it was sent: a
 * page with what the form sent, and a way on or back. Promises: nothing of what was sent is lost or shown; what is
 * carried out is what was asked about; a form that is longer than any of ours is refused, not drawn. Must not know any
 * page.
 */

import { RequestError } from '../../../db/errors.ts'
import type { Field, View } from '../components/section.ts'
import { TEXTS } from '../texts.ts'
import { formOf, hidden } from './builders.ts'
import { addressWith } from './list.ts'
import { type PageAnswer, type PageRequest, show } from './page.ts'

/** The field of a form that outlived its session. */
export const KEPT = 'kept-after-sign-out'

/** Fields that belong to the page that a form stands on, not to what it sends. */
const OWN = ['csrf', 'question', 'answer', 'answer_tone', 'warning', 'keep', 'confirmed', KEPT]

/** What a page carries on of a form, in fields and in characters: the columns of an import are the most fields. */
const MAX_KEPT = { fields: 500, characters: 32 * 1024 }

/** What a form sent, to be sent once more. @throws RequestError bad_request when that is too much for a page. */
function carried(form: URLSearchParams): Field[] {
  const pairs = [...form].filter(([name]) => !OWN.includes(name))
  const characters = pairs.reduce((sum, [name, value]) => sum + name.length + value.length, 0)
  if (pairs.length > MAX_KEPT.fields || characters > MAX_KEPT.characters)
    throw new RequestError('bad_request', TEXTS.formTooLarge)
  return pairs.map(([name, value]) => hidden(name, value))
}

/** The form that was sent, to be sent once more. @param by what says so. */
const again = (request: PageRequest, submit: string, by: Field, more: Parameters<typeof formOf>[3] = {}) =>
  formOf(addressWith(request, {}), submit, [...carried(request.form), by], more)

/** The question of the form that was sent. @param cancel where to go instead. */
export const questionView = (request: PageRequest, cancel: string): View => ({
  title: request.form.get('question') ?? '',
  lead: request.form.get('warning') ?? undefined,
  back: { href: cancel, label: 'Back, change nothing' },
  sections: [
    again(request, request.form.get('answer') || 'Confirm', hidden('confirmed', 'yes'), {
      id: 'confirm',
      reset: { href: cancel, label: request.form.get('keep') || 'Go back' },
      tone: request.form.get('answer_tone') === 'danger' ? 'danger' : undefined,
    }),
  ],
})

/** A question that a page asks by itself. @param asked its words and what the answer sends besides, by their fields. */
export function asking(
  request: PageRequest,
  asked: Readonly<Record<string, string>>,
  cancel: string,
): PageAnswer {
  const form = new URLSearchParams([...request.form])
  for (const [name, value] of Object.entries(asked)) form.set(name, value)
  return show(questionView({ ...request, form }, cancel))
}

/** Whether a form sent anything that somebody typed or chose. */
export const isWorthKeeping = ({ form }: PageRequest): boolean => carried(form).length > 0

/** Why a form whose session is over cannot be kept, when it cannot even be read. */
export const endedError = (error: unknown): unknown =>
  error instanceof RequestError && error.code === 'payload_too_large'
    ? new RequestError('payload_too_large', TEXTS.sessionEnded)
    : error

/** A form whose session is over: kept until its sender has signed in elsewhere. */
export const endedView = (request: PageRequest): View => ({
  title: 'Your session has ended',
  narrow: true,
  lead: 'Nothing was changed, and what you typed is kept on this page. Sign in in another tab, then come back here.',
  sections: [
    { kind: 'actions', links: [{ href: '/login', label: 'Sign in in another tab', tab: true }] },
    again(request, 'Send it again', hidden(KEPT, 'yes')),
  ],
})
