/**
 * Asks for confirmation before a form is processed, if its page requires it or its session ended in between.
 * The question has its own URL, with the submitted form encrypted for the session. The answer submits the
 * same fields again. A form that is larger than any of ours is rejected.
 */

import { RequestError } from '../../../db/errors.ts'
import { toSearchParams } from '../../http/forms.ts'
import type { Field, View } from '../components/section.ts'
import { TEXTS } from '../texts.ts'
import { buildForm, hidden } from './builders.ts'
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

/** Marks a form whose session has ended. */
export const KEPT = 'kept-after-sign-out'

const OWN = ['csrf', 'confirmed', KEPT]

/** Limits of a form that is repeated on another page. The columns of an import need the most fields. */
const MAX_KEPT = { fields: 500, characters: 32 * 1024 }

/** Returns hidden fields that send a form again. @throws RequestError bad_request for a form that is too large. */
function carried(form: URLSearchParams): Field[] {
  const pairs = [...form].filter(([name]) => !OWN.includes(name))
  const characters = pairs.reduce((sum, [name, value]) => sum + name.length + value.length, 0)
  if (pairs.length > MAX_KEPT.fields || characters > MAX_KEPT.characters)
    throw new RequestError('bad_request', TEXTS.formTooLarge)
  return pairs.map(([name, value]) => hidden(name, value))
}

/** Builds the page with a question. @param cancel the path that cancelling leads to. */
const questionView = ({ question, ...asked }: Question, request: PageRequest, cancel: string): View => ({
  title: question,
  lead: asked.warning,
  back: { href: cancel, label: 'Back without changes' },
  sections: [
    buildForm(addressWith(request, {}), asked.answer, {
      id: 'confirm',
      reset: { href: cancel, label: asked.keep ?? 'Go back' },
      tone: asked.tone,
      fields: [
        ...carried(request.form).filter(({ name }) => asked.fields?.[name] === undefined),
        ...Object.entries(asked.fields ?? {}).map(([name, value]) => hidden(name, value)),
        hidden('confirmed', 'yes'),
      ],
    }),
  ],
})

/** Builds the question for a form whose session ended, if its page has no question. */
export const outlivedView = (request: PageRequest, cancel: string): View =>
  questionView({ question: 'Send this form now?', answer: 'Send it' }, request, cancel)

/**
 * Maximum length of a question's path and query, in characters. Reverse proxies accept 8,000 by default. Our longest
 * form, a plan catalog of 32 KiB, has about 6,000. For a longer address, the response to the POST is the question.
 */
const MAX_ADDRESS = 7_000
const QUESTION = '/confirm'

const questionPath = (path: string): string => path + QUESTION

type SealedForm = { path: string; session: string; form: [name: string, value: string][] }

const sealForm = (sealed: SealedForm, { secrets }: Pick<PageDeps, 'secrets'>): string =>
  seal(secrets, 'question', sealed)

/** Returns the URL of the question of a form that wasn't submitted, with its fields. @param path the form's path. */
export const questionAddress = (
  path: string,
  fields: Readonly<Record<string, string>>,
  { person }: PersonRequest,
  deps: Pick<PageDeps, 'secrets'>,
): string => {
  const sealed = { path, session: person.session_id, form: Object.entries(fields) }
  return addressWith(
    { path: questionPath(path), query: new URLSearchParams() },
    { form: sealForm(sealed, deps) },
  )
}

type PathAbove = (path: string, query: URLSearchParams) => string
type Handle = (request: PersonRequest, deps: PageDeps) => Promise<PageAnswer>

/** Returns a handler that redirects to the question, which has a URL so that browsers can go back to it. */
export const asksFirst =
  (page: Page, above: PathAbove): Handle =>
  async (request, deps) => {
    const asked = await (page.asks as NonNullable<TeamPage['asks']>)(request as TeamRequest, deps)
    if (asked === null) return (page.handle as Handle)(request, deps)
    if ('kind' in asked) return asked
    const { path, person } = request
    const form = carried(request.form).map(({ name, value = '' }): [string, string] => [name, value])
    const sealed = sealForm({ path, session: person.session_id, form }, deps)
    const address = addressWith(
      { ...request, path: questionPath(path) },
      { form: form.length > 0 ? sealed : undefined },
    )
    return address.length > MAX_ADDRESS
      ? show(questionView(asked, request, above(path, request.query)))
      : redirect(address)
  }

/** Returns the handler of a question's URL. It shows a notice if nothing is left to confirm. */
const asksAgain =
  (page: Page, above: PathAbove): Handle =>
  async (request, deps) => {
    const path = request.path.slice(0, -QUESTION.length)
    const query = new URLSearchParams([...request.query])
    query.delete('form')
    const cancel = above(path, query)
    const sealed = unseal<SealedForm>(deps.secrets, 'question', request.query.get('form') ?? undefined)
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
      // A deleted object has no page, but its list remains.
      const isGone = error.code === 'not_found'
      const href = isGone ? above(address.replace(/\/[^/]*$/, ''), query) : cancel
      const back = { href, label: 'Go back' }
      return show({
        title: 'Nothing left to confirm',
        lead: error.message,
        sections: [{ kind: 'actions', links: [back] }],
      })
    }
  }

/** Returns the pages with questions. @param above returns the path of the page that contains a form. */
export const questionPages = (pages: readonly Page[], above: PathAbove): Page[] =>
  pages
    .filter(({ asks }) => asks !== undefined)
    .map((page) => ({
      ...({ method: 'GET', path: page.path + QUESTION, access: page.access, isQuestion: true } as const),
      handle: asksAgain(page, above),
    })) as Page[]

/** True if a form has fields other than the dashboard's. */
export const isWorthKeeping = ({ form }: PageRequest): boolean => carried(form).length > 0

/** Returns the error for a form without a session that can't be read. */
export const endedError = (error: unknown): unknown =>
  error instanceof RequestError && error.code === 'payload_too_large'
    ? new RequestError('payload_too_large', TEXTS.sessionEnded)
    : error

/** Builds the page for a form whose session has ended. It keeps the form until the user has signed in. */
export const endedView = (request: PageRequest): View => ({
  title: 'Your session has ended',
  narrow: true,
  lead: 'Nothing was changed, and your input is kept on this page. Sign in in another tab, then come back here.',
  sections: [
    { kind: 'actions', links: [{ href: '/login', label: 'Sign in in another tab', tab: true }] },
    buildForm(addressWith(request, {}), 'Send it again', {
      fields: [...carried(request.form), hidden(KEPT, 'yes')],
    }),
  ],
})
