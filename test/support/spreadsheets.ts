/** What a spreadsheet may make of a line of a CSV file, whatever separates lists where it is opened. */

/** Every piece of a text that is split at each separator, at any of them, and at all. */
export const piecesOf = (text: string): string[] =>
  text
    .split(/[\r\n]/)
    .flatMap((line) => [line, ...[',', ';', '\t', /[,;\t]/].flatMap((separator) => line.split(separator))])

/** True if a piece begins a formula, after quotes and spaces. */
export const isFormula = (piece: string): boolean => /^[\s\p{Cc}\p{Cf}"]*[=+\-@＝＋－＠]/u.test(piece)
