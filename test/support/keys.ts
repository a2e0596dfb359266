/**
 * Uses a page by keyboard only. Tab moves the focus. Each focused element must be visibly focused, within the
 * window and not below the header.
 */
import type { Browser, Page } from 'playwright-core'
import type { Test } from 'tap'
import { signInWith } from './browser.ts'
import type { Service } from './service.ts'
import { until } from './worker.ts'

/** More stops than a test needs on any page. */
const MAX_STOPS = 250

/** The focused element. `wrong` is the error in how the focus is shown, or ''. */
type Stop = { name: string; inMain: boolean; wrong: string }

/** The accessible name of an element. */
const NAME = `(one) => {
  const labels = [...(one.labels ?? [])].map((label) => label.textContent.trim())
  const name = [one.getAttribute('aria-label'), ...labels, one.matches('input, select, textarea') ? '' : one.textContent]
  return name.filter(Boolean).join(' ').replace(/\\s+/g, ' ').trim()
}`

/** The names of the focusable elements in the content of a page. */
const IN_MAIN = `[...document.querySelectorAll('main :is(a, button, input, select, textarea, summary)')].map(${NAME})`
const SKIP = 'Skip to content'

// A date field and a frame have internal stops, which the browser marks itself.
const STOP = `(() => {
  const one = document.activeElement
  if (one === null || one === document.body) return { name: '', inMain: false, wrong: '' }
  const { top, bottom, left, right, width, height } = one.getBoundingClientRect()
  const header = document.querySelector('header.top')
  const covered = header && one.closest('main') && bottom <= header.getBoundingClientRect().bottom
  const { outlineStyle, outlineWidth } = getComputedStyle(one)
  const showsItself = one.matches('iframe, [type=date], [type=datetime-local]')
  const wrong = [
    !showsItself && (outlineStyle === 'none' || outlineWidth === '0px') && 'shows no focus',
    (bottom <= 0 || top >= innerHeight || right <= 0 || left >= innerWidth) && 'is out of the window',
    (width < 2 || height < 2) && 'is too small to see',
    covered && 'is below the header',
  ]
  return {
    name: (${NAME})(one),
    inMain: one.closest('main') !== null,
    wrong: wrong.filter(Boolean).join(', '),
  }
})()`

/** Returns the focused element. */
export const focused = (page: Page): Promise<Stop> => page.evaluate<Stop>(STOP)

/** Moves the focus with Tab and checks it. @returns the focused element. */
export async function tab(t: Test, page: Page): Promise<Stop> {
  await page.keyboard.press('Tab')
  const stop = await focused(page)
  t.equal(stop.wrong, '', `${stop.name}: ${page.url()}`)
  return stop
}

/**
 * Tabs to the element with this name. Uses the skip link if the element is in the main content. @throws Error
 * if no element has the name.
 */
export async function tabTo(t: Test, page: Page, name: string | RegExp): Promise<void> {
  const seen: string[] = []
  const is = (one: string): boolean => (typeof name === 'string' ? one === name : name.test(one))
  for (let stops = 0; stops < MAX_STOPS; stops += 1) {
    const stop = await tab(t, page)
    if (is(stop.name)) return
    seen.push(stop.name)
    if (stop.name === SKIP && (await page.evaluate<string[]>(IN_MAIN)).some(is))
      await page.keyboard.press('Enter')
  }
  throw new Error(`Tab leads to no ${name}, but to ${[...new Set(seen)].join(' | ')}`)
}

/** Tabs to an element and hits Enter, for elements that change the page without leaving it. */
export async function press(t: Test, page: Page, name: string | RegExp): Promise<void> {
  await tabTo(t, page, name)
  await page.keyboard.press('Enter')
}

/** Hits Enter, which opens another page, and waits for that. */
export async function enter(page: Page): Promise<void> {
  await page.evaluate('window.isLeft = true')
  await page.keyboard.press('Enter')
  const isThere = "!window.isLeft && document.readyState === 'complete'"
  await until('another page is there', () => page.evaluate<boolean>(isThere).catch(() => false))
}

/** Tabs to an element and opens its page with Enter. */
export async function follow(t: Test, page: Page, name: string | RegExp): Promise<void> {
  await tabTo(t, page, name)
  await enter(page)
}

/** Tabs to a field and types, replacing its content. */
export async function type(t: Test, page: Page, name: string | RegExp, words: string): Promise<void> {
  await tabTo(t, page, name)
  await page.keyboard.press('Control+A')
  await page.keyboard.type(words)
}

/** Tabs to a select and types the start of the wanted option until it is selected. */
export async function choose(t: Test, page: Page, name: string | RegExp, wanted: string): Promise<void> {
  await tabTo(t, page, name)
  await page.keyboard.type(wanted)
  const chosen = await page.evaluate<string>('document.activeElement.selectedOptions[0].textContent.trim()')
  t.equal(chosen, wanted, page.url())
}

/**
 * Tabs to a file field and opens its dialog with Space. It listens before tabbing: the browser learns of
 * listeners and keys on different channels, and without a listener it opens its own window.
 */
export async function pickFile(
  t: Test,
  page: Page,
  name: string | RegExp,
  file: { name: string; mimeType: string; buffer: Buffer },
): Promise<void> {
  const open = async (): Promise<void> => {
    await tabTo(t, page, name)
    await page.keyboard.press('Space')
  }
  const [chooser] = await Promise.all([page.waitForEvent('filechooser'), open()])
  await chooser.setFiles(file)
}

/** Opens a page for a user who has paused its updates, so that only keys change it. */
export async function signInByKeys(browser: Browser, service: Service, who: { t: Test; team: string }) {
  const { context, page } = await signInWith(browser, service, who)
  await context.addInitScript("sessionStorage.paused = 'yes'")
  await page.reload()
  return page
}

/** Waits until a page shows this text. */
export const says = (page: Page, words: string | RegExp): Promise<void> =>
  page.locator('main').getByText(words).first().waitFor()
