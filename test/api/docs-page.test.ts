/**
 * The documentation page in a browser: languages, search, copy buttons, accessibility, and use without
 * script.
 */
import type { Browser, Page } from 'playwright-core'
import { isAccessible, launchBrowser } from '../support/browser.ts'
import { startService } from '../support/service.ts'
import t from '../support/tap.ts'

const browser = await launchBrowser(t, 'the documentation page')
if (browser) await reads(browser)

async function reads(browser: Browser): Promise<void> {
  const { base } = await startService(t)
  const opened = async (options: Parameters<Browser['newContext']>[0] = {}): Promise<Page> => {
    const context = await browser.newContext(options)
    t.teardown(() => context.close())
    const page = await context.newPage()
    await page.goto(`${base}/docs`)
    return page
  }
  const shown = (page: Page, id: string) => page.locator(`section:has(#${id}) .in:visible h4`).allInnerTexts()

  t.test('shows calls in the selected language, also without script', async (t) => {
    const page = await opened({ javaScriptEnabled: false })
    t.strictSame(await shown(page, 'sendEmail'), ['curl'])
    t.strictSame(await shown(page, 'batches'), ['Node.js'], 'where there is no call in curl')
    await page.getByLabel('Python').check()
    t.strictSame(await shown(page, 'sendEmail'), ['Python'])
    t.strictSame(await shown(page, 'batches'), ['Python'])
    t.equal(await page.locator('#search').isVisible(), false)
  })

  t.test('is accessible, and has a search and copy buttons', async (t) => {
    const page = await opened({ permissions: ['clipboard-read', 'clipboard-write'] })
    await isAccessible(t, page, 'docs')
    await page.keyboard.press('/')
    await page.keyboard.type('track email')
    t.match(await page.locator('#search output').innerText(), /^\d+ found$/)
    t.equal(await page.locator('#delivery-status').isVisible(), true)
    t.equal(await page.locator('#rate_limited').isVisible(), false)
    await page.getByRole('searchbox').fill('xylophone')
    t.equal(await page.locator('#search output').innerText(), 'Nothing matches.')
    await page.getByRole('searchbox').fill('')
    const copy = page.locator('section:has(#first-email) .listing button').first()
    await copy.click()
    await page.waitForFunction(`document.querySelector('.listing button').textContent === 'Copied'`)
    t.match(await page.evaluate<string>('navigator.clipboard.readText()'), /^export HELIOGRAPH_URL=/)
  })
}
