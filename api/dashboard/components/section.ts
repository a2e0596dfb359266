/**
 * What pages are made of: a handful of sections, each with a view of the same name under views/partials/.
 * Promises: plain data, so that all HTML is in the views, where everything is escaped. Must not know any page.
 */
import type { Cell, Loose, Tone } from './cell.ts'
import type { DifferenceLine } from './difference.ts'

/**
 * @param href after /dashboard, or the service's own where it is `outside`.
 * @param tab whether it opens beside the page.
 * @param main whether it is what the page is mostly for, beside its title.
 * @param menu whether it is in the menu beside the title, however few buttons there are.
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
  placeholder?: string
  required?: boolean
  autofocus?: boolean
  /** The page's own word: a form shown again after a refusal does not get back what was sent. */
  own?: boolean
  /** Whether it shares a line with those beside it that say so, too. */
  beside?: boolean
  rows?: number
  code?: boolean
  options?: readonly { value: string; label: string; selected?: boolean }[]
  /** A box that takes away what the field is about. */
  removal?: Loose<{ name: string; value: string; label: string; checked?: boolean }>
  /** What a browser offers to complete it with; anything else may be typed. */
  offers?: readonly string[]
}>

export type Form = Loose<{
  /** After /dashboard. */
  action: string
  method: 'get' | 'post'
  fields: readonly Field[]
  submit: string
  /** What the form says as `next` when it is sent by its button. */
  next?: string
  /**
   * Other buttons that send it, and say something else as `next`; they do not insist on what is required. What `counts`
   * is pressed by the page's script as the form changes.
   */
  others?: readonly { next: string; label: string; counts?: boolean }[]
  tone?: 'danger' | 'quiet'
  /** Whether it is in the menu beside the title, however few buttons there are. */
  menu?: boolean
  /** What another form of the page joins it by. */
  name?: string
  /** Another form of the page, whose fields are sent with these; the answer is shown in a frame, and the page stays. */
  joins?: { form: string; frame: string }
  /** Whether a file is the response: the page stays. */
  file?: boolean
  /** A form that sends a file. */
  multipart?: boolean
  /** Whether its fields stand two in a row: a choice and what belongs to it. */
  pairs?: boolean
  /** Whether each field is one line: its label, its value, and a box that takes it away. */
  rows?: boolean
  /** What it does, in the menu beside the title. */
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
/** @param at a time that the title ends with. @param folded several of one kind, behind a title for all of them. */
export type Alert = Loose<{
  tone: Tone
  title: string
  at?: Cell
  text?: string
  link?: Link
  folded?: readonly Alert[]
}>
/** Links to other views of the same thing, side by side. */
export type Switch = { label: string; links: readonly (Link & { current: boolean })[] }
/** A choice of a list's filter. @param off whether a press takes the choice away. */
export type Chip = Loose<{ href: string; label: string; current?: boolean; count?: string; off?: boolean }>
/** @param after a short text behind them. */
export type Chips = Loose<{ chips: readonly Chip[]; after?: string }>
type Step = Loose<{ label: string; href?: string; done?: boolean; current?: boolean }>
/** What a new team does first. */
export type ChecklistItem = Loose<{ title: string; text?: string; link?: Link; done: boolean }>
export type Row = Loose<{ key?: string; cells: readonly Cell[] }>
export type Moment = Loose<{ tone: Tone; title: string; at: Cell; detail?: string; who?: string }>
/** @param wrap whether long values take several lines; otherwise a row is one line, with the whole in its tip. */
export type Column = Loose<{ label: string; number?: boolean; wrap?: boolean }>
/** A line of a checklist. @param cell what is known of it, at the right. */
export type Check = Loose<{ label: string; detail?: string; tone: 'good' | 'bad' | 'plain'; cell?: Cell }>
/**
 * A DNS record to publish. Each line has a value to copy.
 * @param missing the end of the value that DNS does not have yet
 */
export type DnsRecord = Loose<{
  title: string
  state: Cell
  detail: string
  lines: readonly Loose<{ label: string; value: string; missing?: string; copied?: string; tip?: string }>[]
}>
/** The colours of a chart: of two that are bad, one is worse. */
export type BarTone = Tone | 'worse'
type Bar = { x: number; y: number; width: number; height: number; tone: BarTone }

/**
 * @param noteAt a time that the note ends with.
 * @param fold whether the title alone is seen until it is pressed.
 * @param about what a folded section belongs to, for who hears the title alone.
 */
type Titled = Loose<{
  title?: string
  about?: string
  note?: string
  noteAt?: Cell
  id?: string
  fold?: boolean
}>

export type PageLink = Link & Loose<{ rel?: 'prev' | 'next' }>

/** What can be done with something: links and buttons in one line. Beside a title two are buttons (server/acts.ts). */
export type Actions = Loose<{
  /** The main button: it sends a form of the page, by its name. */
  saves?: { form: string; label: string }
  links?: readonly Link[]
  forms?: readonly Form[]
}>

export type Section = Titled &
  Loose<
    | { kind: 'tiles'; tiles: readonly Tile[]; live?: boolean }
    /** @param calm what is said where there are none. */
    | { kind: 'alerts'; alerts: readonly Alert[]; calm?: string; live?: boolean }
    | { kind: 'facts'; facts: readonly { label: string; cell: Cell }[]; live?: boolean }
    | {
        kind: 'table'
        columns: readonly Column[]
        rows: readonly Row[]
        /** A list says how many rows are new, instead of showing them by itself. */
        fresh?: boolean
        /** What to say, and what to do next, when there are no rows. */
        empty: string
        start?: Link
        next?: readonly PageLink[]
        live?: boolean
      }
    | ({ kind: 'form'; reset?: Link } & Form & {
          /** Whether a button beside the page's title opens it, or an entry of the menu there. */
          folded?: boolean | 'menu'
        })
    /** @param pressed choices that a click makes. */
    | ({
        kind: 'filter'
        reset: Link | null
        more?: readonly Link[]
        further?: readonly Field[]
        pressed?: Chips
      } & Form)
    | ({ kind: 'chips' } & Chips)
    /** The steps of something that is done page by page. */
    | { kind: 'stepper'; steps: readonly Step[] }
    | { kind: 'steps'; steps: readonly ChecklistItem[] }
    | ({ kind: 'actions' } & Actions)
    | { kind: 'tabs'; links: readonly (Link & { current: boolean })[] }
    | { kind: 'timeline'; moments: readonly Moment[]; live?: boolean; empty: string }
    /** How far something has come: `done` of `of`, in words beside the bar. */
    | { kind: 'progress'; done: number; of: number; words: string; label: string; live?: boolean }
    /** What is well and what is not, one line each. @param empty what is said where there are none. */
    | { kind: 'checklist'; checks: readonly Check[]; empty: string; next?: Link; live?: boolean }
    | { kind: 'records'; records: readonly DnsRecord[] }
    | { kind: 'code'; code: string }
    /** An email as its recipient sees it, with ways to those of others. */
    | { kind: 'inbox'; from: string; subject: string; src: string; links: readonly Link[] }
    | { kind: 'text'; paragraphs: readonly string[] }
    | {
        kind: 'frame'
        src: string
        /** What forms show their answer in it by. */
        name?: string
        links?: readonly (Link & { current?: boolean })[]
        width?: 'phone' | 'tablet'
      }
    | {
        kind: 'chart'
        /** One for each hour or day, whose bars stand on each other; `title` says what they say. */
        columns: readonly { title: string; bars: readonly Bar[] }[]
        ticks: readonly { y: number; label: string }[]
        marks: readonly { x: number; label: string }[]
        legend: readonly { tone: BarTone; label: string; total: string }[]
        label: string
        switches?: readonly Switch[]
        /** The same as a table, behind its title. */
        table?: Extract<Section, { kind: 'table' }>
      }
    | { kind: 'difference'; lines: readonly DifferenceLine[] }
  >

export type View = Loose<{
  title: string
  lead?: string
  /** How the thing stands that the page is about. */
  state?: Cell
  /** What can be done with it, beside the title. */
  actions?: Actions
  /** Where the page hangs. */
  back?: Link
  /** What is above both columns. */
  above?: readonly Section[]
  sections: readonly Section[]
  /** What stands beside the sections, or below them where there is no room. */
  aside?: readonly Section[]
  /** What stands below both columns. */
  below?: readonly Section[]
  /** Whether both columns are as wide as each other. */
  even?: boolean
  /** For people who are not signed in: a single narrow column, no navigation. */
  narrow?: boolean
}>
