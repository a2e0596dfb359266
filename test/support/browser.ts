/**
 * Debian's chromium, and what tests of the dashboard do with it: sign in, look whether a page is accessible and fits.
 * Promises: nothing is downloaded; where there is no chromium, tests say so and go on without.
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

// The first one is made for this and takes less than half of the processor time.
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
  // Each document begins afresh: to optimize its code takes longer than what is won.
  '--js-flags=--no-opt --no-maglev',
]

/** For what is waited for on a page, in milliseconds: a busy machine must only be slow. */
const PATIENCE = 90_000

/** A browser until the test ends; null, and the test says why, where there is none. */
export async function launchBrowser(t: Test, what: string): Promise<Browser | null> {
  if (!CHROMIUM) {
    t.pass(what, { skip: 'chromium is not installed (Debian: apt-get install -y chromium-headless-shell)' })
    return null
  }
  const browser = await chromium.launch({ executablePath: CHROMIUM, args: FLAGS })
  t.teardown(() => browser.close())
  return browser
}

/** @param also another team that they are in, with the same role. */
type Reader = { t: Test; team: string; email?: string; role?: Role; operator?: boolean; also?: string }

/** A browser window in which somebody of the team has signed in by a link: its owner, an operator too, unless said. */
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

/** The pages whose documents bring axe with them: half a megabyte goes to the browser once for each, not each time. */
const bringing = new WeakSet<Page>()

async function bringAxe(page: Page): Promise<void> {
  if (bringing.has(page)) return
  bringing.add(page)
  await page.addInitScript({ content: AXE })
  await page.evaluate(AXE)
}

type Violation = { id: string; nodes: { html: string }[] }

/**
 * What presses need room for (WCAG 2.5.8): smaller than 24 × 24 px, unless it is a link within a sentence or hidden.
 */
const TOO_SMALL = `[...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, summary')].filter((one) => {
  const { width, height } = one.getBoundingClientRect()
  const isInline = one.matches('p a, td a, dd a, dd button, label input, li p a, .detail a, .submit a, h1 a, footer a')
  return !isInline && one.checkVisibility() && !one.closest('.vh') && !one.matches('.skip, .vh') && (width < 24 || height < 23.5) && width > 1
}).map((one) => one.outerHTML.slice(0, 120))`

/** Takes away the rows of a table after its first ones, for axe: it takes long for each, and they are made alike. */
const SHORTENED = `[...document.querySelectorAll('tbody')].map((body) => {
  const rows = [...body.children].slice(5)
  for (const row of rows) row.remove()
  return () => body.append(...rows)
})`

const AXE_RUN = `(async () => {
  const rows = ${SHORTENED}
  try {
    return (await axe.run(document, { iframes: false, preload: false, resultTypes: ['violations'] })).violations.map(
      ({ id, nodes }) => ({ id, nodes: nodes.map(({ html }) => ({ html })) }))
  } finally {
    for (const putBack of rows) putBack()
  }
})()`

/** Fails unless the page is accessible as far as axe sees. */
export async function isAccessible(t: Test, page: Page, about: string): Promise<void> {
  await bringAxe(page)
  const violations = await page.evaluate<Violation[]>(AXE_RUN)
  t.strictSame(
    violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`),
    [],
    about,
  )
}

/** Buttons that their cell cuts. */
const CUT = `[...document.querySelectorAll('td button')].filter((one) => {
  const [own, room] = [one, one.closest('td > div')].map((box) => box.getBoundingClientRect())
  return one.checkVisibility() && own.right > room.right + 1
}).map((one) => one.outerHTML.slice(0, 160))`

/** Notices that something lies over, or that lie over something. */
const OVER = `[...document.querySelectorAll('.notice')].filter((notice) =>
  [...document.querySelectorAll('main button, main a, main h1')].some((one) => {
    const [a, b] = [notice, one].map((box) => box.getBoundingClientRect())
    return !notice.contains(one) && one.checkVisibility() && a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom
  })).map((one) => one.outerHTML.slice(0, 160))`

/** What is wrong with how a page stands in its window: pixels that it is too wide, what is cut, covered, small. */
const UNFIT = `({
  wider: Math.max(0, document.documentElement.scrollWidth - innerWidth),
  cut: ${CUT},
  over: ${OVER},
  small: ${TOO_SMALL},
})`

const FIT = { wider: 0, cut: [], over: [], small: [] }

/**
 * Fails unless the page fits its window, no button is cut, nothing lies over a notice, and what is pressed has room for
 * a finger.
 */
export async function fits(t: Test, page: Page, about: string): Promise<void> {
  t.strictSame(await page.evaluate(UNFIT), FIT, about)
}
