/**
 * Compiles the views once at startup. layout.hbs renders each section with the partial of its kind. All
 * values are escaped, which test/architecture.test.ts enforces. Views can't access prototypes, and only have
 * Handlebars' built-in helpers.
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
