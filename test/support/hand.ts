/** Uses a page like a person, and counts: each click, each choice, each filled field and each key is a step. */
import type { Locator, Page } from 'playwright-core'

export type Hand = {
  page: Page
  /** Clicks something that leads to another page, and waits for it. */
  follow: (locator: Locator) => Promise<void>
  /** Clicks a button that sends a form. */
  press: (name: string) => Promise<void>
  /** Clicks something on the page. */
  click: (locator: Locator) => Promise<void>
  type: (locator: Locator, text: string) => Promise<void>
  file: (locator: Locator, text: string) => Promise<void>
  /** Presses Enter in a field. */
  enter: () => Promise<void>
  steps: () => number
  /** The steps that are clicks. */
  clicks: () => number
}

export function handOf(page: Page): Hand {
  let [steps, clicks] = [0, 0]
  const counted = async (act: Promise<unknown>): Promise<void> => {
    steps += 1
    await act
  }
  const click = async (locator: Locator): Promise<void> => {
    clicks += 1
    await counted(locator.click())
  }
  const follow = async (locator: Locator): Promise<void> => {
    await Promise.all([page.waitForEvent('load'), click(locator)])
  }
  return {
    page,
    click,
    follow,
    press: (name) => follow(page.getByRole('button', { name, exact: true })),
    type: (locator, text) => counted(locator.fill(text)),
    file: (locator, text) => {
      clicks += 1
      return counted(
        locator.setInputFiles({ name: 'list.csv', mimeType: 'text/csv', buffer: Buffer.from(text) }),
      )
    },
    enter: async () => {
      await Promise.all([page.waitForEvent('load'), counted(page.keyboard.press('Enter'))])
    },
    steps: () => steps,
    clicks: () => clicks,
  }
}
