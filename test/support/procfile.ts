/** Reads the Procfile's lines, so that benches and chaos measure processes as deployed. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const ROOT = join(import.meta.dirname, '../..')

/**
 * Returns the Node options on the line that runs this file, with our files as URLs. Empty without such a
 * line.
 */
export function procfileOptions(file: string): string[] {
  const lines = readFileSync(join(ROOT, 'Procfile'), 'utf8').split('\n')
  const line = lines.find((each) => each.endsWith(` ${file}`)) ?? ''
  const options = line.split(' exec node ')[1]?.split(' ').slice(0, -1) ?? []
  return options.map((option) => (option.startsWith('./') ? pathToFileURL(join(ROOT, option)).href : option))
}
