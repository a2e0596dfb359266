/**
 * The views, compiled once at the start: layout.hbs around a page's sections, each drawn by the partial of its name.
 * Promises: all values are escaped (a house test forbids the ways around); views reach own properties alone, no
 * prototypes and no helpers but Handlebars' own.
 */

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import Handlebars from 'handlebars'
import { BASE } from './base.ts'

const VIEWS = join(import.meta.dirname, 'views')

export type Render = (context: object) => string

export function compileViews(): Render {
  const views = Handlebars.create()
  const options = { knownHelpersOnly: true, preventIndent: true }
  const partials = readdirSync(join(VIEWS, 'partials'))
  for (const file of partials) {
    const source = readFileSync(join(VIEWS, 'partials', file), 'utf8')
    views.registerPartial(file.replace('.hbs', ''), views.compile(source, options))
  }
  const layout = views.compile(readFileSync(join(VIEWS, 'layout.hbs'), 'utf8'), options)
  return (context) => layout({ ...context, base: BASE })
}
