/**
 * Types of the sections that pages consist of. Each has a partial of the same name in views/partials/.
 * Sections are plain data. All HTML is in the views, which escape everything.
 */
import type { Cell, Loose, Tone } from './cell.ts'
import type { DifferenceLine } from './difference.ts'

/**
 * A link. `href` is the path after /dashboard, or after the origin with `outside`. `tab` opens a new tab.
 * `main` makes it the main button next to the title. `menu` always puts it into the menu next to the title.
 */
export type Link = Loose<{
  href: string
  label: string
  tab?: boolean
  outside?: boolean
  main?: boolean
  menu?: boolean
}>

export type Field = Loose<{
  name: string
  label: string
  type:
    | 'text'
    | 'email'
    | 'search'
    | 'date'
    | 'datetime-local'
    | 'number'
    | 'textarea'
    | 'select'
    | 'checks'
    | 'radios'
    | 'hidden'
    | 'file'
  value?: string
  hint?: string
  /** Shows the hint as a warning. */
  warns?: boolean
  placeholder?: string
  required?: boolean
  autofocus?: boolean
  /** Keeps the page's value when a rejected form is shown again. */
  own?: boolean
  /** Puts it on one line with adjacent fields that also set this. */
  beside?: boolean
  /** A heading above this field and those after it. */
  group?: Loose<{ title: string; hint?: string }>
  rows?: number
  code?: boolean
  /** `about` explains a choice of its own, below its label. */
  options?: readonly Loose<{ value: string; label: string; about?: string; selected?: boolean }>[]
  /** A checkbox that removes the object of the field. */
  removal?: Loose<{ name: string; value: string; label: string; checked?: boolean }>
  /** Suggestions of the browser, with a text next to each. Other values are allowed. Fields can share a list. */
  offers?: readonly Loose<{ value: string; label?: string }>[]
}>

export type Form = Loose<{
  /** The path after /dashboard. */
  action: string
  method: 'get' | 'post'
  fields: readonly Field[]
  /** Rarely used fields below the others, collapsed unless `open`. */
  further?: readonly Field[]
  /** The label that shows them. Default: more options, or more filters. */
  unfold?: string
  open?: boolean
  submit: string
  /** The value of `next` if it is sent with its button. */
  next?: string
  /** Other buttons, which send it with their `next` even if incomplete. Each change clicks the one that `counts`. */
  others?: readonly { next: string; label: string; counts?: boolean }[]
  tone?: 'danger' | 'quiet'
  /** Always puts it into the menu next to the title. False keeps a destructive one, which is the next step, out. */
  menu?: boolean
  /** The ID of its element, for `joins`. */
  name?: string
  /** Shows the result of the form above its buttons. It has an ID. */
  result?: Section
  /** Only a button, which sends the form with this name and `next`. */
  sends?: string
  /** Adds the fields to another form of the page. The button sends it to `action` and shows the response in a frame. */
  joins?: { form: string; frame: string }
  /** True if the response is a download. */
  file?: boolean
  multipart?: boolean
  /** Shows a choice and its text in one row, with the hint of the choice. These are the headings. */
  pairs?: readonly string[]
  /** Shows a field per row: its label, its value and the checkbox that removes it. */
  rows?: boolean
  /** Its description in the menu next to the title. */
  about?: string
}>

export type Tile = Loose<{
  label: string
  value: string
  detail?: string /** 0 to 100. */
  filled?: number
  tone?: Tone
  href?: string
}>
/** `at` is a time at the end of the title. `folded` contains several similar alerts, collapsed under one title. */
export type Alert = Loose<{
  tone: Tone
  title: string
  at?: Cell
  text?: string
  link?: Link
  folded?: readonly Alert[]
}>
export type Switch = { label: string; links: readonly (Link & { current: boolean })[] }
/** A value of a list's filter. With `off`, a click removes it. */
export type Chip = Loose<{ href: string; label: string; current?: boolean; count?: string; off?: boolean }>
/** `before` and `after` are short texts around them. */
export type Chips = Loose<{ chips: readonly Chip[]; before?: string; after?: string }>
type Step = Loose<{ label: string; href?: string; done?: boolean; current?: boolean }>
/** A first step of a new team. */
export type ChecklistItem = Loose<{ title: string; text?: string; link?: Link; done: boolean }>
export type Row = Loose<{ key?: string; cells: readonly Cell[] }>
export type Moment = Loose<{ tone: Tone; title: string; at: Cell; detail?: string; who?: string }>
/**
 * The `main` column identifies a row. Buttons are named after it, and cards start with it. Columns that
 * `grow` share the rest of the width. With `wrap`, long values wrap. Otherwise they are cut and have a
 * tooltip.
 */
export type Column = Loose<{
  label: string
  number?: boolean
  main?: boolean
  grow?: boolean
  wrap?: boolean
  href?: string
  sorted?: string
}>
/** A line of a checklist, with `cell` at the right. */
export type Check = Loose<{
  label: string
  detail?: string
  tone: 'good' | 'warn' | 'bad' | 'plain'
  cell?: Cell
}>
/**
 * A DNS record to publish. `missing` is the end of the value that isn't in DNS yet. `short` is the start of a long
 * value, which is collapsed.
 */
export type DnsRecord = Loose<{
  title: string
  state: Cell
  detail: string
  lines: readonly Loose<{
    label: string
    value: string
    short?: string
    missing?: string
    copied?: string
    tip?: string
  }>[]
}>
export type BarTone = Tone | 'worse'
type Bar = { x: number; y: number; width: number; height: number; tone: BarTone }

/**
 * `noteAt` is a time at the end of the note. `fold` collapses the section under its title. `about` completes
 * the title of a collapsed section for screen readers.
 */
type Heading = Loose<{
  title?: string
  about?: string
  note?: string
  noteAt?: Cell
  id?: string
  fold?: boolean
}>

export type PageLink = Link & Loose<{ rel?: 'prev' | 'next' }>

/** Links and buttons on one line. At most two are shown as buttons next to a title (server/action-menu.ts). */
export type Actions = Loose<{ links?: readonly Link[]; forms?: readonly Form[] }>

export type Section = Heading &
  Loose<
    | { kind: 'tiles'; tiles: readonly Tile[]; live?: boolean }
    /** `calm` is shown instead of an empty list. */
    | { kind: 'alerts'; alerts: readonly Alert[]; calm?: string; live?: boolean }
    | { kind: 'facts'; facts: readonly { label: string; cell: Cell }[]; live?: boolean }
    | {
        kind: 'table'
        columns: readonly Column[]
        rows: readonly Row[]
        /** Shows the number of new rows instead of inserting them. */
        fresh?: boolean
        /** The text of an empty table. `start` links to the next step. */
        empty: string
        start?: Link
        next?: readonly PageLink[]
        live?: boolean
        /** Actions on the selected rows. Each sends their keys as `ids`. */
        picks?: readonly Form[]
      }
    | ({ kind: 'form'; reset?: Link; more?: readonly Link[] } & Form & {
          /** Opens it with a button next to the title of the page, never the main one if `quiet`, or from its menu. */
          folded?: boolean | 'menu' | 'quiet'
        })
    /** `pressed` are choices that a click makes. */
    | ({ kind: 'filter'; reset: Link | null; more?: readonly Link[]; pressed?: Chips } & Form)
    | ({ kind: 'chips' } & Chips)
    | { kind: 'stepper'; steps: readonly Step[] }
    | { kind: 'steps'; steps: readonly ChecklistItem[] }
    | ({ kind: 'actions' } & Actions)
    | { kind: 'tabs'; links: readonly (Link & { current: boolean })[] }
    | { kind: 'timeline'; moments: readonly Moment[]; live?: boolean; empty: string }
    /** A progress bar, with `words` below it. */
    | { kind: 'progress'; done: number; of: number; words: string; label: string; live?: boolean }
    /** Checks with their result, one per line. `empty` is shown instead of an empty list. */
    | { kind: 'checklist'; checks: readonly Check[]; empty: string; next?: Link; live?: boolean }
    | { kind: 'records'; records: readonly DnsRecord[] }
    | { kind: 'code'; code: string; next?: Link | undefined }
    /** An email as a recipient sees it, with links to those of other recipients. */
    | { kind: 'inbox'; from: string; subject: string; src: string; links: readonly Link[] }
    /** A message as a phone shows it. */
    | { kind: 'bubble'; header: string; body: string; footer: string; buttons: readonly string[] }
    | { kind: 'text'; paragraphs: readonly string[] }
    | {
        kind: 'frame'
        src: string
        /** The name for forms that show their response in it. */
        name?: string
        links?: readonly (Link & { current?: boolean })[]
        /** A link at the end of their line. */
        side?: Link
        width?: 'phone' | 'tablet'
      }
    | {
        kind: 'chart'
        /** Stacked bars of each hour or day. `title` describes them in text. */
        columns: readonly { title: string; bars: readonly Bar[] }[]
        ticks: readonly { y: number; label: string }[]
        marks: readonly { x: number; label: string }[]
        legend: readonly { tone: BarTone; label: string; total: string }[]
        label: string
        switches?: readonly Switch[]
        /** The same data as a table, collapsed under its title. */
        table?: Extract<Section, { kind: 'table' }>
      }
    | { kind: 'difference'; lines: readonly DifferenceLine[] }
  >

export type SectionOf<K extends Section['kind']> = Extract<Section, { kind: K }>

export type View = Loose<{
  title: string
  lead?: string
  /** The status of the object that the page is about. */
  state?: Cell
  actions?: Actions
  back?: Link
  /** Sections above both columns. */
  above?: readonly Section[]
  sections: readonly Section[]
  /** Sections in the right column, or below the others on narrow screens. */
  aside?: readonly Section[]
  /** Sections below both columns. */
  below?: readonly Section[]
  /** Gives both columns the same width. The text names the right one. */
  even?: string
  /** True for a single narrow column without navigation, such as before sign-in. */
  narrow?: boolean
}>
