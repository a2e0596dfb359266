/** Finds the cells that a spreadsheet may read from a CSV line, with any list separator. */

/** Returns the pieces of a text, split at each separator, at any of them, and not at all. */
export const piecesOf = (text: string): string[] =>
  text
    .split(/[\r\n]/)
    .flatMap((line) => [line, ...[',', ';', '\t', /[,;\t]/].flatMap((separator) => line.split(separator))])

/** True if a piece is a formula, ignoring leading quotes and spaces. */
export const isFormula = (piece: string): boolean => /^[\s\p{Cc}\p{Cf}"]*[=+\-@＝＋－＠]/u.test(piece)
