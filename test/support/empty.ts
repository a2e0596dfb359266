/**
 * Matchers for `t.match` where a value must be empty. tap treats `[]` and `{}` as a part of any other array
 * or object, so a pattern with any of them can't fail (patterns.test.ts forbids them; for text use `/^$/`).
 */

/** Fits an array without elements and an object without properties; nothing else. */
// biome-ignore lint/complexity/noStaticOnlyClass: tap asks a pattern that is a class whether a value is its instance
export class EMPTY {
  static [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === 'object' && value !== null && Object.keys(value).length === 0
  }
}
