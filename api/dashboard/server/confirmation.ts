/**
 * Asks before a form is carried out, if its route says so, and if its session ended before it was sent. A question is a
 * page with an address of its own, with the form sealed in it for the session that sent it. Promises: nothing of what
 * was sent is lost or shown; what is carried out is what was asked about; a form that is longer than any of ours is
 * rejected. Must not know any page.
 */

import { RequestError } from '../../../db/errors.ts'
import { toSearchParams } from '../../http/forms.ts'
import type { Field, View } from '../components/section.ts'
import { TEXTS } from '../texts.ts'
import { formOf, hidden } from './builders.ts'
import type { PageDeps } from './deps.ts'
import { seal, unseal } from './guard.ts'
import { addressWith } from './list.ts'
import {
  type Page,
  type PageAnswer,
  type PageRequest,
  type PersonRequest,
  type Question,
  redirect,
  show,
  type TeamPage,
  type TeamRequest,
} from './page.ts'

/** The field of a form that outlived its session. */
export const KEPT = 'kept-after-sign-out'

/** Fields that belong to the page that a form stands on, not to what it sends. */
const OWN = ['csrf', 'confirmed', KEPT]

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

/** The page with a question. @param cancel where to go instead. */
const questionView = ({ question, ...asked }: Question, request: PageRequest, cancel: string): View => ({
  title: question,
  lead: asked.warning,
  back: { href: cancel, label: 'Back, change nothing' },
  sections: [
    formOf(
      addressWith(request, {}),
      asked.answer,
      [
        ...carried(request.form).filter(({ name }) => asked.fields?.[name] === undefined),
        ...Object.entries(asked.fields ?? {}).map(([name, value]) => hidden(name, value)),
        hidden('confirmed', 'yes'),
      ],
      { id: 'confirm', reset: { href: cancel, label: asked.keep ?? 'Go back' }, tone: asked.tone },
    ),
  ],
})

/** The question about a form that outlived its session and asks none of its own. */
export const outlivedView = (request: PageRequest, cancel: string): View =>
  questionView({ question: 'Send this form now?', answer: 'Send it' }, request, cancel)

/** The longest form that an address carries, sealed, in characters. A longer one is asked about on the spot. */
const MAX_IN_ADDRESS = 6_000
const QUESTION = '/confirm'

type Sealed = { path: string; session: string; form: [name: string, value: string][] }
type Above = (path: string, query: URLSearchParams) => string
type Handle = (request: PersonRequest, deps: PageDeps) => Promise<PageAnswer>

/** Asks before a page's form is carried out, at an address of its own, which a browser may go back to. */
export const asksFirst =
  (page: Page, above: Above): Handle =>
  async (request, deps) => {
    const asked = await (page.asks as NonNullable<TeamPage['asks']>)(request as TeamRequest, deps)
    if (asked === null) return (page.handle as Handle)(request, deps)
    if ('kind' in asked) return asked
    const { path, person } = request
    const form = carried(request.form).map(({ name, value = '' }): [string, string] => [name, value])
    const sealed = seal(deps.secrets, 'question', { path, session: person.session_id, form } satisfies Sealed)
    if (sealed.length > MAX_IN_ADDRESS) return show(questionView(asked, request, above(path, request.query)))
    return redirect(
      addressWith({ ...request, path: path + QUESTION }, { form: form.length > 0 ? sealed : undefined }),
    )
  }

/** Shows the question again that a form was answered with. What is gone since then is no longer asked about. */
const asksAgain =
  (page: Page, above: Above): Handle =>
  async (request, deps) => {
    const path = request.path.slice(0, -QUESTION.length)
    const query = new URLSearchParams([...request.query])
    query.delete('form')
    const cancel = above(path, query)
    const sealed = unseal<Sealed>(deps.secrets, 'question', request.query.get('form') ?? undefined)
    const isOwn = sealed?.path === path && sealed.session === request.person.session_id
    if (!isOwn && request.query.has('form')) return redirect(cancel)
    const sent = { ...request, path, query, form: toSearchParams(sealed?.form ?? []) }
    try {
      const asked = await (page.asks as NonNullable<TeamPage['asks']>)(sent as TeamRequest, deps)
      if (asked === null) return redirect(cancel)
      return 'kind' in asked ? asked : show(questionView(asked, sent, cancel))
    } catch (error) {
      if (!(error instanceof RequestError) || error.code === 'unavailable') throw error
      const [address = ''] = cancel.split('?')
      const list = address.replace(/\/[^/]*$/, '')
      const back = { href: above(list, query), label: 'Go back' }
      return show({
        title: 'There is nothing left to confirm',
        lead: error.message,
        sections: [{ kind: 'actions', links: [back] }],
      })
    }
  }

/** The pages that ask, for those who may carry out what they ask about. @param above the page that a form is on. */
export const questionPages = (pages: readonly Page[], above: Above): Page[] =>
  pages
    .filter(({ asks }) => asks !== undefined)
    .map((page) => ({
      ...({ method: 'GET', path: page.path + QUESTION, access: page.access, isQuestion: true } as const),
      handle: asksAgain(page, above),
    })) as Page[]

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
