/**
 * What a pattern of `t.match` says where nothing may stand. tap takes `[]` and `{}` for a part of any other array or
 * object, so that a pattern with one of them cannot fail (patterns.test.ts checks that none has; of a text
 * it is `/^$/`).
 */

/** Fits an array without elements and an object without properties; nothing else. */
// biome-ignore lint/complexity/noStaticOnlyClass: tap asks a pattern that is a class whether a value is its instance
export class EMPTY {
  static [Symbol.hasInstance](value: unknown): boolean {
    return typeof value === 'object' && value !== null && Object.keys(value).length === 0
  }
}
