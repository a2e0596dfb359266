/**
 * Keeps cells of a CSV file from being formulas, however a spreadsheet splits its lines: at commas, semicolons, tabs or
 * line breaks, inside of quotes or not. Pure, and linear in the text.
 */

// What begins a formula, also in its full-width form. Each looks back from the character that it has found to the
// beginning of its piece: looking ahead from every separator would be quadratic.
const FORMULA = /[=+\-@＝＋－＠](?<=(?:^|[,;\t\r\n])[\s\p{Cc}\p{Cf}"]*'*.)/gu
const GUARDED = /'([=+\-@＝＋－＠])(?<=(?:^|[,;\t\r\n])[\s\p{Cc}\p{Cf}"]*'+.)/gu

/** Puts an apostrophe before everything in a cell that could begin a formula, and before a leading tab or break. */
export function guardFormulas(cell: string): string {
  const guarded = cell.replace(FORMULA, "'$&")
  return /^'*[\t\r]/.test(cell) ? `'${guarded}` : guarded
}

/** The cell that `guardFormulas` was given. */
export const unguardFormulas = (cell: string): string =>
  (/^'+[\t\r]/.test(cell) ? cell.slice(1) : cell).replace(GUARDED, '$1')
