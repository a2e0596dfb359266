/** What guides are written with: a guide, a listing, a table. Pure. */
import type { Code } from '../../db/errors.ts'
import { STATUS } from '../http/errors.ts'
import type { Sample } from './samples.ts'

/** Code samples stand at the end of a guide. */
export type Guide = { id: string; title: string; html: string; samples?: readonly Sample[] }

/** A listing; what is in it is HTML already. */
export const code = (text: string): string => `<pre tabindex="0"><code>${text.trim()}</code></pre>`

/** The way to what a code means, by its status and name. */
export const refusal = (of: Code): string => `<a href="#${of}"><code>${STATUS[of]} ${of}</code></a>`

export const table = (head: readonly string[], rows: readonly (readonly string[])[]): string => {
  const line = (tag: string, cells: readonly string[]): string =>
    `<tr>${cells.map((cell) => `<${tag}>${cell}</${tag}>`).join('')}</tr>`
  return `<div class="wide" tabindex="0"><table><thead>${line('th', head)}</thead><tbody>${rows.map((row) => line('td', row)).join('')}</tbody></table></div>`
}
