/**
 * What pages are made of: a handful of sections, each with a view of the same name under views/partials/.
 * Promises: plain data, so that all HTML is in the views, where everything is escaped. Must not know any page.
 */
import type { Cell, Tone } from './cell.ts'

/** @param href after /dashboard. @param tab whether it opens beside the page. */
export type Link = { href: string; label: string; tab?: boolean }

export type Field = {
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
    | 'hidden'
    | 'file'
  value?: string
  hint?: string
  placeholder?: string
  required?: boolean
  autofocus?: boolean
  /** The page's own word: a form shown again after a refusal does not get back what was sent. */
  own?: boolean
  rows?: number
  code?: boolean
  options?: readonly { value: string; label: string; selected?: boolean }[]
}

export type Form = {
  /** After /dashboard. */
  action: string
  method: 'get' | 'post'
  fields: readonly Field[]
  submit: string
  /** Asked before it is sent: by the browser, or without scripts on a page of its own. */
  confirm?: string
  tone?: 'danger' | 'quiet'
  /** A form that sends a file. */
  multipart?: boolean
}

export type Tile = {
  label: string
  value: string
  detail?: string /** 0 to 100. */
  filled?: number
  tone?: Tone
  href?: string
}
export type Alert = { tone: Tone; title: string; text?: string; link?: Link }
export type Moment = { tone: Tone; title: string; at: Cell; detail?: string; who?: string }
export type Column = { label: string; number?: boolean }
export type Bar = { x: number; y: number; width: number; height: number; tone: Tone; title: string }

type Titled = { title?: string; note?: string; id?: string }

export type Section = Titled &
  (
    | { kind: 'tiles'; tiles: readonly Tile[]; live?: boolean }
    | { kind: 'alerts'; alerts: readonly Alert[]; calm: string; live?: boolean }
    | { kind: 'facts'; facts: readonly { label: string; cell: Cell }[]; live?: boolean }
    | {
        kind: 'table'
        columns: readonly Column[]
        rows: readonly { cells: readonly Cell[] }[]
        /** What to say, and what to do next, when there are no rows. */
        empty: string
        start?: Link
        next?: Link | null
        live?: boolean
      }
    | ({ kind: 'form'; folded?: boolean; open?: boolean } & Form)
    | ({ kind: 'filter'; reset: Link | null; more?: readonly Link[] } & Form)
    | { kind: 'actions'; links?: readonly Link[]; forms?: readonly Form[] }
    | { kind: 'tabs'; links: readonly (Link & { current: boolean })[] }
    | { kind: 'timeline'; moments: readonly Moment[]; live?: boolean; empty: string }
    | { kind: 'code'; code: string }
    | { kind: 'text'; paragraphs: readonly string[] }
    | { kind: 'frame'; src: string; links?: readonly Link[] }
    | {
        kind: 'chart'
        bars: readonly Bar[]
        ticks: readonly { y: number; label: string }[]
        days: readonly { x: number; label: string }[]
        legend: readonly { tone: Tone; label: string }[]
        label: string
      }
    | { kind: 'difference'; lines: readonly { sign: '+' | '-' | ' '; text: string }[] }
  )

export type View = {
  title: string
  lead?: string
  /** Where the page hangs. */
  back?: Link
  sections: readonly Section[]
  /** For people who are not signed in: a single narrow column, no navigation. */
  narrow?: boolean
}
