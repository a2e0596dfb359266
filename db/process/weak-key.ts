/**
 * Recognizes guessable secrets, because with one signed address an attacker can try keys offline. Random strings of
 * 16 characters pass. Typical typed ones are rejected.
 */

// Terms that users type in secrets. The rest must be random.
const WORDS =
  /pass(word|wort|phrase)?|secret|change|please|default|example|heliograph|welcome|letmein|qwert[yz]|asdf|admin|test|dummy|foobar|production|development|key/g
const LONGEST_READ = 128
const LEAST_LEFT = 12
const LEAST_DIFFERENT = 8

/** Removes runs of three or more consecutive characters, such as `abc`, `321` or `aaa`. */
function withoutRuns(text: string): string {
  const step = (at: number): number => text.charCodeAt(at) - text.charCodeAt(at - 1)
  const inRun = (at: number): boolean => Math.abs(step(at)) <= 1 && step(at) === step(at - 1)
  const kept = [...text].filter((_, at) => !inRun(at) && !inRun(at + 1) && !inRun(at + 2))
  return kept.join('')
}

/** Returns the rest of a key without these terms, runs and repetitions. */
const stripKey = (key: string): string =>
  withoutRuns(key.slice(0, LONGEST_READ).toLowerCase().replace(WORDS, '')).replace(/(.+?)\1+/g, '$1')

export function isWeakKey(key: string): boolean {
  const core = stripKey(key)
  return core.length < LEAST_LEFT || new Set(core).size < LEAST_DIFFERENT
}
