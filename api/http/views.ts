/**
 * Compiles Handlebars views. All values are escaped, which test/conventions.test.ts enforces. This module loads with
 * the first page, because the compiler needs 3 MB.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import Handlebars from 'handlebars'

export type Render = (name: string, context: object) => string

/** Includes subfolders. A view can include the others by their names. */
export function compileViews(folder: string): Render {
  const handlebars = Handlebars.create()
  const options = { knownHelpersOnly: true, preventIndent: true }
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.hbs'),
  )
  const views = new Map(
    files.map((file) => {
      const source = readFileSync(join(folder, file), 'utf8')
      return [basename(file, '.hbs'), handlebars.compile(source, options)]
    }),
  )
  for (const [name, view] of views) handlebars.registerPartial(name, view)
  return (name, context) => {
    const view = views.get(name)
    if (!view) throw new Error(`unknown view ${name}`)
    return view(context)
  }
}
