/** Reads the Procfile's lines, so that benches and chaos measure processes as deployed. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const ROOT = join(import.meta.dirname, '../..')

const lineOf = (file: string): string =>
  readFileSync(join(ROOT, 'Procfile'), 'utf8')
    .split('\n')
    .find((each) => each.endsWith(` ${file}`)) ?? ''

/**
 * Returns the Node options on the line that runs this file, with our files as URLs. Empty without such a
 * line.
 */
export function procfileOptions(file: string): string[] {
  const options = lineOf(file).split(' exec node ')[1]?.split(' ').slice(0, -1) ?? []
  return options.map((option) => (option.startsWith('./') ? pathToFileURL(join(ROOT, option)).href : option))
}

/** Returns the variables set by the line. */
export const procfileVariables = (file: string): Record<string, string> =>
  Object.fromEntries(
    [...lineOf(file).matchAll(/ ([A-Z_]+)=(\S+)/g)].map(([, name = '', value = '']) => [name, value]),
  )
