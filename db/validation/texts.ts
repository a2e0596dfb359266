/** The error messages of db/validation/. `fill` replaces the names in braces. */

export const TEXTS = {
  changedSince: '{change} Review it, then try again.',
  nul: "a NUL character isn't allowed",
  noValue: 'The variable {name} has no value.',
  notClosed: "{start} isn't closed",
  atLine: 'line {line}: {problem}',
  notVariable: "isn't a {{name}} variable. A name can contain letters, digits and . _ -",
} as const
