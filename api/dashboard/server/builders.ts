/**
 * Builders for pages and their parts: pages, actions, tables, facts and forms. Each returns a plain value
 * (page.ts). An action runs in one transaction, as the user who clicked, at the database's time.
 */
import type { By } from '../../../db/accounts/audit/record.ts'
import type { Cell, Loose } from '../components/cell.ts'
import type { Alert, Field, Form, Section, SectionOf } from '../components/section.ts'
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

/** The access that a page needs, with its options if it has any. */
type AccessOptions<A extends Access> = A | ({ access: A } & Partial<Pick<Page, 'fromReplica' | 'takes'>>)

/** Marks a read-only list that can lag slightly (DECISIONS: Reads from a replica). */
export const fromReplica = <A extends Access>(access: A) => ({ access, fromReplica: true }) as const

/** Raises the size limit of a form, for files and templates. */
export const large = <A extends Access>(access: A) => ({ access, takes: MAX_LARGE_FORM_BYTES })

/** Returns the question to confirm before a form is processed. */
type AskFirst<A extends Access, P extends string> = (
  request: RequestOf<A, ParamsOf<P>>,
  deps: PageDeps,
) => ReturnType<NonNullable<Page['asks']>>

type Handle<A extends Access, P extends string> = (
  request: RequestOf<A, ParamsOf<P>>,
  deps: PageDeps,
) => Promise<PageAnswer>

const definePage =
  (method: Page['method']) =>
  <A extends Access, P extends string>(whom: AccessOptions<A>, path: P, handle: Handle<A, P>): PageOf<A> =>
    ({ ...(typeof whom === 'string' ? { access: whom } : whom), method, path, handle }) as Page as PageOf<A>

export const get = definePage('GET')

const definePost = definePage('POST')

/**
 * Defines a form handler that enqueues a background job or needs work outside a transaction. `confirm` adds a
 * question.
 */
export const post = <A extends Access, P extends string>(
  whom: AccessOptions<A>,
  path: P,
  handle: Handle<A, P>,
) => {
  const page = definePost(whom, path, handle)
  return { ...page, confirm: (asks: AskFirst<A, P>) => ({ ...page, asks }) as Page as PageOf<A> }
}

/** Defines a form handler that runs in one transaction, as the user. */
export const action = <A extends Exclude<Access, 'open'>, P extends string>(
  whom: AccessOptions<A>,
  path: P,
  work: (by: PageDeps & By, request: RequestOf<A, ParamsOf<P>>) => Promise<PageAnswer>,
) =>
  post<A, P>(whom, path, (request, deps) => asActor(request, deps, (by) => work({ ...deps, ...by }, request)))

type Falsy = false | null | undefined | '' | 0

/** Flattens a list of items and lists by one level, without falsy items. */
export const compact = <T>(all: readonly (T | readonly T[] | Falsy)[]): T[] =>
  all.flatMap((each) => (each ? (each as T | readonly T[]) : []))

/** Cells by label. Falsy ones are left out. */
type Labelled<L extends string = string> = Readonly<Record<L, Cell | Falsy>>
/** The same for labels from outside. An object would move a numeric label, such as a year, to the front. */
type Pairs = Iterable<readonly [label: string, cell: Cell | Falsy]>

const toPairs = (cells: Labelled | Pairs): { label: string; cell: Cell }[] => {
  const pairs = Symbol.iterator in cells ? (cells as Pairs) : Object.entries(cells)
  return compact([...pairs].map(([label, cell]) => cell && { label, cell }))
}

type SectionOptions<K extends Section['kind'], Own extends string> = Omit<SectionOf<K>, 'kind' | Own>

export const buildFacts = (facts: Labelled, more: SectionOptions<'facts', 'facts'> = {}): Section => ({
  ...more,
  kind: 'facts',
  facts: toPairs(facts),
})

/** Builds a section of alerts, or nothing without alerts. */
export const buildAlerts = (
  alerts: readonly (Alert | Falsy)[],
  more: SectionOptions<'alerts', 'alerts' | 'calm'> = {},
): Section[] => {
  const those = compact(alerts)
  return those.length === 0 ? [] : [{ ...more, kind: 'alerts', alerts: those }]
}

/** Returns the cells of a row, by label. */
export type RowCells<R, L extends string> = (row: R, index: number) => Labelled<L> | Pairs

/** Roles of columns, by label (section.ts). `main` is the first one, and `grow` the main one unless it can wrap. */
export type Roles<L extends string> = Loose<{ main?: L; grow?: readonly L[]; wrap?: readonly L[] }>

export type TableOptions = SectionOptions<'table', 'columns' | 'rows'>

/** `keyOf` identifies a row across refreshes. */
export type RowOptions<R, L extends string> = TableOptions &
  Roles<NoInfer<L>> &
  Loose<{ keyOf?: (row: R) => string }>

/** Builds a table from the cells of each row, by label. Without rows it has only the text for an empty table. */
export function buildTable<R, L extends string>(
  rows: readonly R[],
  shown: RowCells<R, L>,
  { keyOf, ...options }: RowOptions<R, L>,
): SectionOf<'table'> {
  const lines = rows.map((row, index) => ({ row, cells: toPairs(shown(row, index)) }))
  const first = lines[0]?.cells ?? []
  const { main = first[0]?.label, wrap = [], grow = [main], ...more } = options
  const isIn = (labels: readonly (string | undefined)[], label: string) => labels.includes(label)
  return {
    kind: 'table',
    columns: first.map(({ label }, at) => ({
      label,
      number: lines.some(({ cells }) => cells[at]?.cell.number),
      main: label === main,
      grow: isIn(grow, label) && !isIn(wrap, label),
      wrap: isIn(wrap, label),
    })),
    rows: lines.map(({ row, cells }) => ({ key: keyOf?.(row), cells: cells.map(({ cell }) => cell) })),
    ...more,
  }
}

/** Builds a field. Its type is text unless `more` has another one. */
export const field = (name: string, label: string, more: Partial<Field> = {}): Field => ({
  name,
  label,
  type: 'text',
  ...more,
})

/** Builds a hidden field. @param own true to keep the page's value if the form is shown again after an error. */
export const hidden = (name: string, value: string, own = false): Field =>
  field(name, '', { type: 'hidden', value, own })

/** Builds options for a select, checkboxes or radios. @param label returns a value's label, by default itself. */
export const buildOptions = <V extends string>(
  values: readonly V[],
  chosen: readonly unknown[],
  label: (value: V) => string = String,
) => values.map((value) => ({ value, label: label(value), selected: chosen.includes(value) }))

export const buttonCell = (
  action: string,
  label: string,
  more: Partial<NonNullable<Cell['button']>> = {},
): Cell => ({ text: '', button: { action, label, ...more } })

export const button = (action: string, submit: string, more: Partial<Form> = {}): Form => ({
  action,
  method: 'post',
  fields: [],
  submit,
  ...more,
})

export const buildForm = (
  action: string,
  submit: string,
  more: Partial<SectionOf<'form'>> = {},
): SectionOf<'form'> => ({ ...button(action, submit), ...more, kind: 'form' })
