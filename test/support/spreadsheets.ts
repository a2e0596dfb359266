/** Finds what a spreadsheet may read in a CSV line, with any list separator. */

/** Every piece of a text that is split at each separator, at any of them, and at all. */
export const piecesOf = (text: string): string[] =>
  text
    .split(/[\r\n]/)
    .flatMap((line) => [line, ...[',', ';', '\t', /[,;\t]/].flatMap((separator) => line.split(separator))])

/** True if a piece starts a formula, after quotes and spaces. */
export const isFormula = (piece: string): boolean => /^[\s\p{Cc}\p{Cf}"]*[=+\-@＝＋－＠]/u.test(piece)
