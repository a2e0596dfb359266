/**
 * Keeps cells of a CSV file from being read as formulas, even if a spreadsheet splits the file at commas, semicolons,
 * tabs or line breaks. Linear in the text.
 */

// Characters that start a formula, and their full-width forms. Each match looks back to the start of its
// piece, because looking ahead from every separator would be quadratic.
const FORMULA = /[=+\-@＝＋－＠](?<=(?:^|[,;\t\r\n])[\s\p{Cc}\p{Cf}"]*'*.)/gu
const GUARDED = /'([=+\-@＝＋－＠])(?<=(?:^|[,;\t\r\n])[\s\p{Cc}\p{Cf}"]*'+.)/gu

/** Puts an apostrophe before each character that could start a formula, and before a leading tab or line break. */
export function guardFormulas(cell: string): string {
  const guarded = cell.replace(FORMULA, "'$&")
  return /^'*[\t\r]/.test(cell) ? `'${guarded}` : guarded
}

/** Reverts `guardFormulas`. */
export const unguardFormulas = (cell: string): string =>
  (/^'+[\t\r]/.test(cell) ? cell.slice(1) : cell).replace(GUARDED, '$1')
