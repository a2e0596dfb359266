/**
 * Checks the dashboard's pages in all sizes: accessibility with axe, layout, target sizes. If DASHBOARD_LOOKS
 * is a folder, screenshots of each page are stored there, wide and narrow, light and dark, including those of
 * README. DASHBOARD_LOOKS_ONLY is a pattern of paths.
 */
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import type { Test } from 'tap'
import { PAGES } from '../../api/dashboard/routes.ts'
import { FIT, fits, isAccessible, neverPaint, UNFIT } from './browser.ts'

const FOLDER = process.env.DASHBOARD_LOOKS
const ONLY = new RegExp(process.env.DASHBOARD_LOOKS_ONLY ?? '')

/** Pages that aren't checked here: sign-in pages, files, and frames. */
const NO_PAGES = /login|openid|\.csv|\/preview|\/files\//

export const WIDE = { width: 1_280, height: 800 }
/** A tablet, and a window of 1,280 px at 125 %. */
const MIDDLE = [
  { width: 1_024, height: 800 },
  { width: 900, height: 800 },
]
const PHONE = { width: 390, height: 800 }
const NARROW = { width: 320, height: 800 }

/** The screenshots in README by file name, light only and small enough for the repository. */
const README: Readonly<Record<string, string>> = {
  _teams_ID: 'overview',
  _teams_ID_emails_ID: 'email',
  _teams_ID_broadcasts_ID: 'broadcast',
  _operator: 'operator',
}

async function readmePicture(page: Page, name: string): Promise<void> {
  await page.setViewportSize({ width: 1_280, height: 720 })
  await page.screenshot({ path: join(FOLDER ?? '', `${name}.png`) })
}

async function pictures(page: Page, name: string, width: number): Promise<void> {
  await page.setViewportSize({ width, height: 800 })
  const file = name.replace(/[0-9a-f-]{36}/g, 'ID').replace(/[^\w.-]+/g, '_')
  for (const colorScheme of ['dark', 'light'] as const) {
    await page.emulateMedia({ colorScheme })
    const picture = `${file}-${width}-${colorScheme}.png`
    await page.screenshot({ path: join(FOLDER ?? '', picture), fullPage: true })
    const readme = README[file]
    if (readme && width === WIDE.width && colorScheme === 'light') await readmePicture(page, readme)
  }
}

/** True if a path is checked. All are, unless screenshots of some are requested. */
export const isWanted = (path: string): boolean => !FOLDER || ONLY.test(path)

/**
 * Returns the paths of all GET pages whose objects exist.
 * @param things IDs by the end of a path with a parameter, such as `/emails/:id`. Pages of other objects are
 * left out.
 */
export const pathsWith = (things: Readonly<Record<string, string>>): string[] =>
  PAGES.filter(({ method, path }) => method === 'GET' && path !== '' && !NO_PAGES.test(path))
    .map(({ path }) =>
      path.replace(/\/([\w-]+)\/(:\w+)/g, (whole, place: string) => {
        const thing = things[whole]
        return thing === undefined ? whole : `/${place}/${thing}`
      }),
    )
    .filter((path) => !path.includes(':'))

/** Finds tables in a wide window that extend beyond their frame. */
export const BEYOND = `[...document.querySelectorAll('main .scroll')]
  .filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.getAttribute('aria-label'))`

/** Returns the visible parts of a page's frame, its team, and the width of its main column. */
const FRAME = `({
  parts: ['#nav', '.opener', '.seek input', '.menu[open], .menu summary'].filter(
    (one) => document.querySelector(one)?.checkVisibility()),
  team: document.querySelector('.menu summary')?.getAttribute('aria-label') ?? '',
  main: document.querySelector('main').getBoundingClientRect().width,
})`

type Frame = { parts: string[]; team: string; main: number }

/** Finds words that wrap although they would fit on one line. */
const BROKEN = `(() => {
  const broken = []
  const texts = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT)
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const around = node.parentElement
    // A key has no place to break.
    if (around.closest('pre, textarea, option, .vh, svg') || around.textContent.length > 200 || !around.checkVisibility()) continue
    for (const { 0: word, index } of node.data.matchAll(/[\\p{L}\\p{N}_.@]{3,30}/gu)) {
      const range = document.createRange()
      range.setStart(node, index)
      range.setEnd(node, index + word.length)
      const tops = [...range.getClientRects()].map(({ top }) => Math.round(top))
      if (new Set(tops).size > 1) broken.push(word)
    }
  }
  return broken
})()`

/** Finds lists below another section that have no heading, because cards hide the headings of columns. */
const UNTITLED = `[...document.querySelectorAll('section.table:not(:has(h2), .folded) .cards')]
  .map((table) => table.closest('section'))
  .filter((one) => one.previousElementSibling?.matches('section:not(.filter, .chips, .tabs, .progress, .alerts:not(:has(h2)))'))
  .map((one) => one.id + ': ' + one.textContent.replace(/\\s+/g, ' ').slice(0, 60))`

/**
 * Finds cards that break the rules of their lines. The status is at the left of the line below the name, and the time
 * at the right. Labelled values are below it, in the same column in all rows. Each starts on the line of its label.
 */
const UNEVEN = `[...document.querySelectorAll('main .cards tbody tr')].filter((row) => {
  if (getComputedStyle(row.closest('table').tHead).display !== 'none' || !row.checkVisibility()) return false
  const box = (one) => one?.getBoundingClientRect()
  const [status, time] = ['.state:not(.none, .gap)', '.last'].map((one) => box(row.querySelector(one)))
  const others = [...row.querySelectorAll('td:not(.state, .last, .none, .gap, .pick, :has(form))')]
  const line = [status, time].filter(Boolean)
  const [top, bottom] = [Math.min(...line.map((one) => one.top)), Math.max(...line.map((one) => one.bottom))]
  const isInOrder = line.length === 0 || others.every((one) => one.dataset.label ? box(one).top >= bottom - 4 : box(one).bottom <= top + 4)
  const alike = ({ dataset }) => [...row.parentNode.querySelectorAll('td:not(.state, .none, .gap)')].filter((one) => one.dataset.label === dataset.label)
  const isSteady = others.every((one) => !one.dataset.label || alike(one).every(({ offsetLeft }) => offsetLeft === one.offsetLeft))
  const isLeft = !status || status.left - box(row).left < 60
  const isRight = !time || row.querySelector('form') || box(row).right - time.right < 20
  const isLevel = !status || !time || (status.bottom > time.top && status.top < time.bottom)
  const isBeside = others.every((one) => !one.dataset.label || one.firstChild.getClientRects()[0].left > box(one).left + 5)
  return !(isInOrder && isSteady && isLeft && isRight && isLevel && isBeside)
}).map((row) => row.textContent.replace(/\\s+/g, ' ').trim().slice(0, 90))`

const FRAMED = `({ frame: ${FRAME}, broken: ${BROKEN}, untitled: ${UNTITLED}, uneven: ${UNEVEN}, unfit: ${UNFIT} })`

type Framed = { frame: Frame; broken: string[]; untitled: string[]; uneven: string[]; unfit: unknown }

/**
 * Fails unless a page shows its complete frame in the window: the navigation or, on a phone, its menu, the
 * search field, the team's name, and enough width for its content. No single word may be broken.
 */
async function isFramedAt(
  t: Test,
  page: Page,
  { about, team, isWide }: { about: string; team: string; isWide: boolean },
): Promise<void> {
  const { frame, broken, untitled, uneven, unfit } = await page.evaluate<Framed>(FRAMED)
  const way = isWide ? '#nav' : '.opener'
  t.strictSame(frame.parts, [way, '.seek input', '.menu[open], .menu summary'], about)
  t.match(frame.team, `Team: ${team}`, about)
  t.ok(frame.main >= (isWide ? 640 : PHONE.width), `${about}: the main column has ${frame.main} px`)
  t.strictSame(broken, [], `${about}: broken words`)
  t.strictSame(untitled, [], `${about}: lists without a heading`)
  t.strictSame(uneven, [], `${about}: cards with uneven lines`)
  t.strictSame(unfit, FIT, about)
}

/**
 * Fails unless a page shows its complete frame and fits, in a wide window and on a phone.
 * @param team the team's name in the frame.
 */
export async function isFramed(t: Test, page: Page, name: string, team: string): Promise<void> {
  for (const size of [WIDE, PHONE]) {
    await page.setViewportSize(size)
    const about = `${name} at ${size.width} px`
    await isFramedAt(t, page, { about, team, isWide: size === WIDE })
    if (FOLDER) await pictures(page, name, size.width)
  }
}

/** The actions of a page's buttons, by the last part of their paths. */
const DOES = `[...document.querySelectorAll('main form[method=post]')].flatMap((form) => {
  const button = form.querySelector('.submit button, button')
  const act = new URL(form.action).pathname.split('/').at(-1)
  return button ? [{ act, label: button.textContent.trim(), red: button.classList.contains('danger') }] : []
})`

/**
 * Lists the buttons and links of a page by name, with their actions. Links in tables and facts are left out,
 * because their names are data.
 */
const CONTROLS = `[...document.querySelectorAll('main :is(a, button, summary)')].flatMap((one) => {
  if (one.matches('td a, dd a')) return []
  const name = (one.getAttribute('aria-label') ?? one.textContent).replace(/\\s+/g, ' ').trim()
  const sent = one.form ? [...one.form.elements].filter((field) => field.type === 'hidden' && field.name !== 'csrf') : []
  const does = one.href ?? (one.matches('[type=button], summary')
    ? one.dataset.copyText ?? one.dataset.copy ?? one.parentElement.outerHTML
    : [one.formAction, one.value, ...sent.map(({ name, value }) => name + '=' + value)].join(' '))
  return [{ name, does }]
})`

/** Fails unless each button and link with its own action has its own name. */
export async function hasOwnNames(t: Test, page: Page, about: string): Promise<void> {
  const controls = await page.evaluate<{ name: string; does: string }[]>(CONTROLS)
  const ambiguous = [...Map.groupBy(controls, ({ name }) => name)].flatMap(([name, all]) =>
    name === '' || new Set(all.map(({ does }) => does)).size > 1 ? [name] : [],
  )
  t.strictSame(ambiguous, [], `${about}: names of more than one button or link`)
}

const DESTROYS =
  /^(cancel|delete|disable|discard|drop|end|end-others|end-sessions|erase|remove|revoke|stop|suspend)$/
const NAMED = /^(Cancel|Delete|Disable|Discard|Drop|End|Erase|Remove|Revoke|Sign|Stop|Suspend) \S/

/**
 * Fails unless exactly the destructive and stopping buttons are red, and their labels name the action.
 * @returns their actions.
 */
export async function redActs(t: Test, page: Page, name: string): Promise<string[]> {
  const buttons = await page.evaluate<{ act: string; label: string; red: boolean }[]>(DOES)
  for (const { act, label, red } of buttons) {
    t.equal(red, DESTROYS.test(act), `${name}: ${label} (${act})`)
    if (red) t.match(label, NAMED, name)
  }
  return buttons.flatMap(({ act, red }) => (red ? [act] : []))
}

const ASKED = PAGES.filter(({ asks }) => asks !== undefined).map(({ path }) => path.replace(/:\w+/g, '[^/]+'))
const ASKING = `[...document.querySelectorAll('main form[method=post]')].find((form) =>
  new RegExp(${JSON.stringify(`^/dashboard(${ASKED.join('|')})$`)}).test(new URL(form.action).pathname))`

/** Submits the first form of a page that needs confirmation. @returns true if there is one. */
export async function ask(page: Page): Promise<boolean> {
  if (!(await page.evaluate<boolean>(`${ASKING} !== undefined`))) return false
  await Promise.all([page.waitForEvent('load'), page.evaluate(`${ASKING}.submit()`)])
  return true
}

const SIZES = [WIDE, ...MIDDLE, PHONE, NARROW]

type Look = { name: string; size: { width: number; height: number }; team: string | undefined }

/** Checks the open page in one size. */
async function lookAtSize(t: Test, page: Page, { name, size, team }: Look): Promise<void> {
  const about = `${name} at ${size.width} px`
  if (size === WIDE) await isAccessible(t, page, name)
  if (team !== undefined && (size === WIDE || size === PHONE))
    await isFramedAt(t, page, { about, team, isWide: size === WIDE })
  else await fits(t, page, about)
  if (size === WIDE || MIDDLE.includes(size))
    t.strictSame(await page.evaluate<string[]>(BEYOND), [], `${about}: tables beyond their frame`)
  if (FOLDER && size !== NARROW) await pictures(page, name, size.width)
}

/**
 * Checks the open page: axe, its layout at all sizes, and, with a team, its frame (see isFramed). At 900 px
 * and above, no table may hide a column. Starts with the window's size, because each change is a layout.
 * @param name the name of its screenshots.
 */
export async function lookOver(t: Test, page: Page, name: string, team?: string): Promise<void> {
  const isNarrow = page.viewportSize()?.width === NARROW.width
  for (const size of isNarrow ? SIZES.toReversed() : SIZES) {
    // Only the frame is different on a phone.
    if (size === PHONE && team === undefined && !FOLDER) continue
    await page.setViewportSize(size)
    await lookAtSize(t, page, { name, size, team })
  }
}

/** The windows whose pages aren't painted, unless their screenshots are wanted. */
const unpainted = new WeakSet<Page>()

/** Opens a page and checks it. */
export async function lookAt(t: Test, page: Page, url: string, name: string, team?: string): Promise<void> {
  if (!FOLDER && !unpainted.has(page)) await neverPaint(page)
  unpainted.add(page)
  const answer = await page.goto(url)
  t.equal(answer?.status(), name === '/nowhere' ? 404 : 200, name)
  await lookOver(t, page, name, team)
}
