/**
 * Matchers for `t.match` where a value must be empty. tap treats `[]` and `{}` as a part of any other array
 * or object, so a pattern with any of them can't fail (patterns.test.ts forbids them; for text use `/^$/`).
 */

/** Matches an empty array or an object without properties, and nothing else. */
// biome-ignore lint/complexity/noStaticOnlyClass: tap checks a value against a class with instanceof
export class EMPTY {
  static [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === 'object' && value !== null && Object.keys(value).length === 0
  }
}
