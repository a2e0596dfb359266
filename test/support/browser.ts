/**
 * Runs Debian's chromium for tests of the dashboard: signs in, and checks that a page is accessible and fits.
 * Nothing is downloaded. Without chromium, tests print that and continue.
 */
import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import type { Test } from 'tap'
import { linkFor } from '../../db/accounts/members/members.ts'
import type { Role } from '../../db/accounts/members/roles.ts'
import type { Service } from './service.ts'
import { byCli } from './service.ts'

// The first one is built for tests and needs less than half of the CPU time.
const CHROMIUM = ['chromium-headless-shell', 'chromium', 'chromium-browser']
  .map((name) => join('/usr/bin', name))
  .find(existsSync)
const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-sync',
  '--disable-background-networking',
  '--disable-component-update',
  // Documents don't share compiled code, so optimizing it costs more than it saves.
  '--js-flags=--no-opt --no-maglev',
]

/**
 * The timeout for changes on a page, in milliseconds. It is long, because tests must also pass on a busy
 * machine.
 */
const PATIENCE = 90_000

/** Starts a browser, which closes with the test. Without one, returns null and reports a skipped test. */
export async function launchBrowser(t: Test, what: string): Promise<Browser | null> {
  if (!CHROMIUM) {
    t.pass(what, { skip: 'chromium is not installed (Debian: apt-get install -y chromium-headless-shell)' })
    return null
  }
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS })
  t.teardown(() => browser.close())
  return browser
}

/** @param also another team of this user, with the same role. */
type Reader = { t: Test; team: string; email?: string; role?: Role; operator?: boolean; also?: string }

/** Opens a browser window and signs in by a link. By default the user is the team's owner and an operator. */
export async function signInWith(
  browser: Browser,
  { base, database }: Service,
  { t, team, email = 'ana@example.com', role = 'owner', operator = true, also }: Reader,
  options: Parameters<Browser['newContext']>[0] = {},
): Promise<{ context: BrowserContext; page: Page }> {
  const secret = await database.transaction(async (tx) => {
    const linked = (at: string | null) =>
      linkFor(byCli(tx), { email, team: at, role: at === null ? null : role, operator })
    const own = await linked(team)
    if (also === undefined) return own.secret
    await linked(also)
    return (await linked(null)).secret
  })
  const context = await browser.newContext({ reducedMotion: 'reduce', ...options })
  context.setDefaultTimeout(PATIENCE)
  t.teardown(() => context.close())
  const page = await context.newPage()
  await page.goto(`${base}/dashboard/login/${secret}`)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.waitForURL(`${base}/dashboard/teams/${also === undefined ? team : '*'}`)
  return { context, page }
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Pages that load axe with each document. The half megabyte is sent to the browser once per page. */
const bringing = new WeakSet<Page>()

async function bringAxe(page: Page): Promise<void> {
  if (bringing.has(page)) return
  bringing.add(page)
  await page.addInitScript({ content: AXE })
  await page.evaluate(AXE)
}

/** The name of a page's style sheet that hides it. */
const UNPAINTED = 'unpainted'

/**
 * Hides the page's next documents, except from axe. Chromium doesn't paint them then, which is a fifth of its
 * CPU time. Layout, focus and what `checkVisibility` returns stay the same.
 */
export async function neverPaint(page: Page): Promise<void> {
  await page.addInitScript(`{
    const sheet = new CSSStyleSheet()
    sheet.replaceSync(':root { opacity: 0 }')
    document.adoptedStyleSheets.push(sheet)
    globalThis.${UNPAINTED} = sheet
  }`)
}

type Violation = { id: string; nodes: { html: string }[] }

/** Finds targets smaller than 24 × 24 px (WCAG 2.5.8), except links within a sentence and hidden ones. */
const TOO_SMALL = `[...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, summary')].filter((one) => {
  const { width, height } = one.getBoundingClientRect()
  const isInline = one.matches('p a, td a, dd a, dd button, label input, li p a, .detail a, .submit a, h1 a, footer a')
  return !isInline && one.checkVisibility() && !one.closest('.vh') && !one.matches('.skip, .vh') && (width < 24 || height < 23.5) && width > 1
}).map((one) => one.outerHTML.slice(0, 120))`

/** Removes all but the first five rows of each table, because axe is slow and the rows are similar. */
const SHORTENED = `[...document.querySelectorAll('tbody')].map((body) => {
  const rows = [...body.children].slice(5)
  for (const row of rows) row.remove()
  return () => body.append(...rows)
})`

/** The attributes of an element and its ancestors that its colors depend on. */
const COLORING = [
  'class',
  'style',
  'type',
  'role',
  'open',
  'hidden',
  'disabled',
  'aria-current',
  'aria-busy',
  'aria-invalid',
]

/**
 * Makes axe check the contrast of only one among elements with the same look, because contrast is most of its
 * time. The session storage lists the checked looks by color scheme.
 */
const CONTRAST_ONCE = `(() => {
  const key = 'looks ' + matchMedia('(prefers-color-scheme: dark)').matches
  const checked = new Set(JSON.parse(sessionStorage.getItem(key) ?? '[]'))
  const looks = new Map([[null, 0]])
  const lookOf = (one) => {
    if (!looks.has(one)) {
      let look = lookOf(one.parentElement)
      const own = [one.localName, ...${JSON.stringify(COLORING)}.map((name) => one.getAttribute(name))].join()
      for (const each of own) look = (look * 31 + each.codePointAt(0)) % 0xfffffffffff
      looks.set(one, look)
    }
    return looks.get(one)
  }
  const rule = axe._audit.rules.find(({ id }) => id === 'color-contrast')
  const { matches } = rule
  rule.matches = (node, ...rest) => {
    if (!matches.call(rule, node, ...rest)) return false
    const isNew = !checked.has(lookOf(node))
    checked.add(lookOf(node))
    return isNew
  }
  return () => {
    rule.matches = matches
    sessionStorage.setItem(key, JSON.stringify([...checked]))
  }
})()`

/**
 * Finds the header and the navigation if axe has already checked them, apart from links and the current page.
 */
const KNOWN_FRAME = `[...document.querySelectorAll('header.top, #nav')].filter((one) => {
  const html = one.outerHTML.replace(/ (href|value|aria-current)="[^"]*"/g, '')
  if (sessionStorage.getItem(one.localName) === html) return true
  sessionStorage.setItem(one.localName, html)
  return false
})`

const AXE_RUN = `(async () => {
  const rows = ${SHORTENED}
  const keep = ${CONTRAST_ONCE}
  const { ${UNPAINTED}: sheet } = globalThis
  if (sheet) sheet.disabled = true
  try {
    return (await axe.run({ include: [document], exclude: ${KNOWN_FRAME} }, { iframes: false, preload: false, resultTypes: ['violations'] })).violations.map(
      ({ id, nodes }) => ({ id, nodes: nodes.map(({ html }) => ({ html })) }))
  } finally {
    if (sheet) sheet.disabled = false
    keep()
    for (const putBack of rows) putBack()
  }
})()`

/** Fails if axe finds an accessibility error on the page. */
export async function isAccessible(t: Test, page: Page, about: string): Promise<void> {
  await bringAxe(page)
  const violations = await page.evaluate<Violation[]>(AXE_RUN)
  t.strictSame(
    violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`),
    [],
    about,
  )
}

/** Finds buttons that are cut off by their cell. */
const CUT = `[...document.querySelectorAll('td button')].filter((one) => {
  const [own, room] = [one, one.closest('td > div')].map((box) => box.getBoundingClientRect())
  return one.checkVisibility() && own.right > room.right + 1
}).map((one) => one.outerHTML.slice(0, 160))`

/** Finds notices that cover something or are covered. */
const OVER = `[...document.querySelectorAll('.notice')].filter((notice) =>
  [...document.querySelectorAll('main button, main a, main h1')].some((one) => {
    const [a, b] = [notice, one].map((box) => box.getBoundingClientRect())
    return !notice.contains(one) && one.checkVisibility() && a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom
  })).map((one) => one.outerHTML.slice(0, 160))`

/**
 * Finds the layout errors of a page: pixels beyond its width, and elements that are cut, covered or too
 * small.
 */
export const UNFIT = `({
  wider: Math.max(0, document.documentElement.scrollWidth - innerWidth),
  cut: ${CUT},
  over: ${OVER},
  small: ${TOO_SMALL},
})`

export const FIT = { wider: 0, cut: [], over: [], small: [] }

/**
 * Fails unless the page fits its window, no button is cut, no notice is covered, and targets are large
 * enough.
 */
export async function fits(t: Test, page: Page, about: string): Promise<void> {
  t.strictSame(await page.evaluate(UNFIT), FIT, about)
}
