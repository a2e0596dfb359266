/** Checks the text of the stylesheet. A rule for an element must not also match a section. */
import { readdirSync, readFileSync } from 'node:fs'
import t from '../../support/tap.ts'

const DRAWN = new URL('../../../api/dashboard/components/', import.meta.url)
const read = (path: string): string => readFileSync(new URL(path, DRAWN), 'utf8')

t.test('no CSS rule matches sections and elements by class', async (t) => {
  const model = read('section.ts')
  const kinds = new Set([...model.matchAll(/kind: '(\w+)'/g)].map(([, kind = '']) => kind))
  t.ok(kinds.size > 15, `${kinds.size} kinds`)
  const views = readdirSync(new URL('views/partials/', DRAWN)).filter((file) => file !== 'section.hbs')
  const drawn = [read('views/layout.hbs'), ...views.map((file) => read(`views/partials/${file}`))].join('\n')
  const classes = [...drawn.matchAll(/class="([^"]*)"/g)].flatMap(([, names = '']) => names.split(/[^\w-]+/))
  // The type of a field is also a class.
  const types = [...(/type:\n([\s\S]*?)\n {2}value/.exec(model)?.[1] ?? '').matchAll(/'(\w+)'/g)]
  const shared = [...classes, ...types.map(([, type = '']) => type)].filter((name) => kinds.has(name))
  t.ok(shared.includes('difference') && shared.includes('text'), `${shared}`)
  const selectors = [...read('assets/dashboard.css').matchAll(/([^{}]+)\{/g)].map(
    ([, selector = '']) => selector,
  )
  const bare = new RegExp(`(?:^|[\\s>+~,(])\\.(?:${[...new Set(shared)].join('|')})(?![\\w-])`)
  const unlimited = selectors.filter((selector) => bare.test(selector))
  t.strictSame(unlimited, [])
})

t.test('links in tables have the color of links', async (t) => {
  const rules = read('assets/dashboard.css').matchAll(/([^{}]+)\{([^{}]*)\}/g)
  const recolored = [...rules].filter(
    ([, selector, body]) => /\btd a$/.test(`${selector}`) && /\bcolor:/.test(`${body}`),
  )
  t.strictSame(recolored, [])
})
