/**
 * How pages are written: a page to look at, a press that does something, a table by its columns, a form, and what is
 * there for some people alone. Promises: each page is a plain value still (page.ts); what a press does is one
 * transaction, as the person who presses, at the database's time. Must not know any page.
 */
import type { By } from '../../../db/accounts/audit/record.ts'
import type { Cell, Loose } from '../components/cell.ts'
import type { Alert, Field, Form, Section } from '../components/section.ts'
import { asActor } from './action.ts'
import type { PageDeps } from './deps.ts'
import {
  MAX_LARGE_FORM_BYTES,
  type Page,
  type PageAnswer,
  type PageOf,
  type ParamsOf,
  type RequestOf,
} from './page.ts'

type Access = Page['access']

/** Whom a page is for, and what is apart about it. */
type For<A extends Access> = A | ({ access: A } & Partial<Pick<Page, 'fromReplica' | 'takes'>>)

/** For a list that only reads, and may be a moment behind (DECISIONS: Reads from a replica). */
export const fromReplica = <A extends Access>(access: A) => ({ access, fromReplica: true }) as const

/** For a form with a file, or with a template's text. */
export const large = <A extends Access>(access: A) => ({ access, takes: MAX_LARGE_FORM_BYTES })

/** What is asked before a form is carried out. */
type Asks<A extends Access, P extends string> = (
  request: RequestOf<A, ParamsOf<P>>,
  deps: PageDeps,
) => ReturnType<NonNullable<Page['asks']>>

const made =
  (method: Page['method']) =>
  <A extends Access, P extends string>(
    whom: For<A>,
    path: P,
    handle: (request: RequestOf<A, ParamsOf<P>>, deps: PageDeps) => Promise<PageAnswer>,
    asks?: Asks<A, P>,
  ): PageOf<A> =>
    ({
      ...(typeof whom === 'string' ? { access: whom } : whom),
      method,
      path,
      handle,
      asks,
    }) as Page as PageOf<A>

/** A page to look at, or a file to save. */
export const get = made('GET')

/** What a form is sent to that begins a background job, answers by itself, or does things around its transaction. */
export const post = made('POST')

/** What a form is sent to that does one thing, in one transaction as the person, and then leads on. */
export const act = <A extends Exclude<Access, 'open'>, P extends string>(
  whom: For<A>,
  path: P,
  work: (by: PageDeps & By, request: RequestOf<A, ParamsOf<P>>) => Promise<PageAnswer>,
  asks?: Asks<A, P>,
): PageOf<A> =>
  post<A, P>(
    whom,
    path,
    (request, deps) => asActor(request, deps, (by) => work({ ...deps, ...by }, request)),
    asks,
  )

type Falsy = false | null | undefined | '' | 0

/** A list without what is not there: false, or null, in the place of an item or of several. */
export const compact = <T>(all: readonly (T | readonly T[] | Falsy)[]): T[] =>
  all.flatMap((each) => (each ? (each as T | readonly T[]) : []))

/** Cells by their labels; what is not there is left out. */
type Labelled = Readonly<Record<string, Cell | Falsy>>
/** The same where labels are not ours: an object would put a number, such as a year, before all others. */
type Pairs = Iterable<readonly [label: string, cell: Cell | Falsy]>

const thoseOf = (cells: Labelled | Pairs): { label: string; cell: Cell }[] => {
  const pairs = Symbol.iterator in cells ? (cells as Pairs) : Object.entries(cells)
  return compact([...pairs].map(([label, cell]) => cell && { label, cell }))
}

type More<K extends Section['kind'], Own extends string> = Omit<Extract<Section, { kind: K }>, 'kind' | Own>

/** What there is to know of a thing. */
export const factsOf = (facts: Labelled, more: More<'facts', 'facts'> = {}): Section => ({
  ...more,
  kind: 'facts',
  facts: thoseOf(facts),
})

/** Alerts, where there are any. */
export const alertsOf = (
  alerts: readonly (Alert | Falsy)[],
  more: More<'alerts', 'alerts' | 'calm'> = {},
): Section[] => {
  const those = compact(alerts)
  return those.length === 0 ? [] : [{ ...more, kind: 'alerts', alerts: those }]
}

type Table = Extract<Section, { kind: 'table' }>

/**
 * A table by what it shows of each row, label by label; one without rows shows words alone.
 * @param keyOf what a row is known by from one look to the next. @param wrap which columns may take several lines.
 */
export function tableOf<R>(
  rows: readonly R[],
  shown: (row: R, index: number) => Labelled | Pairs,
  {
    keyOf,
    wrap = [],
    ...more
  }: More<'table', 'columns' | 'rows'> & Loose<{ keyOf?: (row: R) => string; wrap?: readonly string[] }>,
): Table {
  const lines = rows.map((row, index) => ({ row, cells: thoseOf(shown(row, index)) }))
  const [first] = lines
  return {
    kind: 'table',
    columns: (first?.cells ?? []).map(({ label }, at) => ({
      label,
      number: lines.some(({ cells }) => cells[at]?.cell.number),
      wrap: wrap.includes(label),
    })),
    rows: lines.map(({ row, cells }) => ({ key: keyOf?.(row), cells: cells.map(({ cell }) => cell) })),
    ...more,
  }
}

/** A field to fill in: for text, unless `more` says otherwise. */
export const field = (name: string, label: string, more: Partial<Field> = {}): Field => ({
  name,
  label,
  type: 'text',
  ...more,
})

/** A field that nobody sees. @param own whether a form that is shown again keeps the page's own value. */
export const hidden = (name: string, value: string, own = false): Field =>
  field(name, '', { type: 'hidden', value, own })

/** A button in a line of a table. */
export const buttonCell = (
  action: string,
  label: string,
  more: Partial<NonNullable<Cell['button']>> = {},
): Cell => ({ text: '', button: { action, label, ...more } })

/** A button that changes something. */
export const press = (action: string, submit: string, more: Partial<Form> = {}): Form => ({
  action,
  method: 'post',
  fields: [],
  submit,
  ...more,
})

type FormSection = Extract<Section, { kind: 'form' }>

/** A form that changes something. */
export const formOf = (
  action: string,
  submit: string,
  fields: readonly Field[],
  more: Partial<FormSection> = {},
): FormSection => ({ ...press(action, submit), fields, ...more, kind: 'form' })
