/**
 * Finds where a text stops being JSON, because JSON.parse does not always say. Pure; one pass, no recursion, and no
 * pattern that can match the same characters in two ways: such a pattern takes exponential time on a broken string.
 */

const SPACE = /[ \t\n\r]*/y
const PLAIN = /[ !#-[\]-\u{10ffff}]*/uy
const ESCAPE = /\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/y
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y
const WORD = /true|false|null/y

/** What may come next. */
type State = 'value' | 'first item' | 'first key' | 'key' | 'colon' | 'after'

/** The end of what a pattern matches right at an offset; -1 when it does not. */
function endOf(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at
  return pattern.test(text) ? pattern.lastIndex : -1
}

/** The end of the string that begins right at an offset; -1 when none does, or it breaks. */
function endOfString(text: string, start: number): number {
  if (text[start] !== '"') return -1
  for (let at = endOf(PLAIN, text, start + 1); ; at = endOf(PLAIN, text, at)) {
    if (text[at] === '"') return at + 1
    at = endOf(ESCAPE, text, at)
    if (at < 0) return -1
  }
}

/** The offset of the first character that no JSON has there; the length of a text that ends too early. */
export function jsonFault(text: string): number {
  const open: ('[' | '{')[] = []
  let state: State = 'value'
  for (let at = endOf(SPACE, text, 0); ; at = endOf(SPACE, text, at)) {
    const next = text[at] ?? ''
    const inside = open.at(-1)
    if (state === 'after') {
      if (inside === undefined || next === '') return at
      if (next === ',') state = inside === '{' ? 'key' : 'value'
      else if (next === (inside === '{' ? '}' : ']')) open.pop()
      else return at
      at += 1
    } else if (state === 'colon') {
      if (next !== ':') return at
      state = 'value'
      at += 1
    } else if ((state === 'first key' && next === '}') || (state === 'first item' && next === ']')) {
      open.pop()
      state = 'after'
      at += 1
    } else if (state === 'key' || state === 'first key') {
      const end = endOfString(text, at)
      if (end < 0) return at
      state = 'colon'
      at = end
    } else if (next === '{' || next === '[') {
      open.push(next)
      state = next === '{' ? 'first key' : 'first item'
      at += 1
    } else {
      const end = Math.max(endOfString(text, at), endOf(NUMBER, text, at), endOf(WORD, text, at))
      if (end < 0) return at
      state = 'after'
      at = end
    }
  }
}
