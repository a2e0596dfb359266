/**
 * Keeps cells of a CSV file from being formulas, however a spreadsheet splits its lines: at commas, semicolons, tabs or
 * line breaks, inside of quotes or not. Pure, and linear in the text.
 */

/** What begins a formula, also in its full-width form. */
const START = '=+\\-@\uFF1D\uFF0B\uFF0D\uFF20'
/** What may be in front of it in a piece of a line, up to the piece's beginning. */
const FRONT = '(?:^|[,;\\t\\r\\n])[\\s\\p{Cc}\\p{Cf}"]*'

// Each looks back from the character that it has found: looking ahead from every separator would be quadratic.
const FORMULA = new RegExp(`[${START}](?<=${FRONT}'*.)`, 'gu')
const GUARDED = new RegExp(`'([${START}])(?<=${FRONT}'+.)`, 'gu')

/** Puts an apostrophe before everything in a cell that could begin a formula, and before a leading tab or break. */
export function guardFormulas(cell: string): string {
  const guarded = cell.replace(FORMULA, "'$&")
  return /^'*[\t\r]/.test(cell) ? `'${guarded}` : guarded
}

/** The cell that `guardFormulas` was given. */
export const unguardFormulas = (cell: string): string =>
  (/^'+[\t\r]/.test(cell) ? cell.slice(1) : cell).replace(GUARDED, '$1')
