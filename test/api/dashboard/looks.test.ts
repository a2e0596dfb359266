/**
 * Every page of the dashboard in a real browser, with the data of a team that has been at it for some weeks: axe, the
 * width of the window, room for fingers. With DASHBOARD_LOOKS set to a folder, pictures of each are left there, wide
 * and narrow, light and dark (DASHBOARD_LOOKS_ONLY: a pattern of paths), README's among them.
 */
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import t from 'tap'
import { PAGES } from '../../../api/dashboard/routes.ts'
import { broadcastingOf } from '../../support/broadcasting.ts'
import { aBroadcast } from '../../support/broadcasts.ts'
import { fits, isAccessible, launchBrowser, signInWith } from '../../support/browser.ts'
import { type LivedIn, livedIn } from '../../support/lived-in.ts'
import { startService } from '../../support/service.ts'

const FOLDER = process.env.DASHBOARD_LOOKS
const ONLY = new RegExp(process.env.DASHBOARD_LOOKS_ONLY ?? '')

const browser = await launchBrowser(t, 'the looks of the dashboard')
if (browser) await looks(browser)

/** The GET pages that one can open with what a lived-in team has. */
function pagePaths({ team, bounced, recipient, template, message }: LivedIn, broadcast: string): string[] {
  const paths = PAGES.filter(
    ({ method, path }) => method === 'GET' && !/login\/|openid|\.csv|\/preview|\/files\//.test(path),
  ).map(({ path }) =>
    path
      .replace(':team', team.id)
      .replace('/broadcasts/:id', `/broadcasts/${broadcast}`)
      .replace('/emails/:id', `/emails/${bounced}`)
      .replace('/templates/:id', `/templates/${template}`)
      .replace('/whatsapp/:id', `/whatsapp/${message}`)
      .replace('/domains/:name', '/domains/example.com')
      .replace('/queues/:queue', '/queues/deliver-email')
      .replace('/operator/teams/:id', `/operator/teams/${team.id}`)
      .replace('/contacts/:email', `/contacts/${recipient}`),
  )
  return ['/nowhere', ...paths.filter((path) => !path.includes(':') && path !== '')]
}

const WIDE = { width: 1_280, height: 800 }
const NARROW = { width: 320, height: 800 }

/** The picture of README, small enough for a repository. */
async function readmePicture(page: Page): Promise<void> {
  await page.setViewportSize({ width: 1_040, height: 600 })
  await page.screenshot({ path: join(FOLDER ?? '', 'overview.png') })
}

async function pictures(page: Page, path: string, width: number): Promise<void> {
  await page.setViewportSize({ width, height: 800 })
  const file = path.replace(/[0-9a-f-]{36}/g, 'ID').replace(/[^\w.-]+/g, '_')
  for (const colorScheme of ['dark', 'light'] as const) {
    await page.emulateMedia({ colorScheme })
    const name = `${file}-${width}-${colorScheme}.png`
    await page.screenshot({ path: join(FOLDER ?? '', name), fullPage: width > 390 })
    if (name === '_teams_ID-1280-light.png') await readmePicture(page)
  }
}

async function looks(browser: Browser): Promise<void> {
  const service = await startService(t, {
    dashboard: {
      specimens: true,
      lookupTxt: async () => ['v=spf1 include:example.net ~all'],
    },
  })
  const lived = await livedIn(service)
  const home = `${service.base}/dashboard`
  const { create } = await broadcastingOf(service, lived.team)
  const paths = pagePaths(lived, await create())
  paths.push(`/teams/${lived.team.id}/broadcasts/${(await aBroadcast(service, lived.team)).id}`)
  const wanted = FOLDER ? paths.filter((path) => ONLY.test(path)) : paths

  t.test('every page is accessible and fits, wide and narrow, light and dark', async (t) => {
    const { page } = await signInWith(browser, service, { t, team: lived.team.id })
    for (const path of wanted) {
      await page.setViewportSize(WIDE)
      await page.goto(home + path)
      await isAccessible(t, page, path)
      await fits(t, page, `${path} at 1,280 px`)
      if (FOLDER) await pictures(page, path, 1_280)
      await page.setViewportSize(NARROW)
      await fits(t, page, `${path} at 320 px`)
      if (FOLDER) await pictures(page, path, 390)
    }
  })

  t.test('the pieces are accessible in the dark, too, at twice the size, and by the keyboard', async (t) => {
    const { page } = await signInWith(browser, service, { t, team: lived.team.id }, { colorScheme: 'dark' })
    await page.goto(`${home}/specimens`)
    await isAccessible(t, page, 'specimens in the dark')
    // A window of 1,280 px at 200 %.
    await page.setViewportSize({ width: 640, height: 400 })
    await fits(t, page, 'specimens at 200 %')
    await page.setViewportSize(WIDE)
    await page.reload()
    const order: string[] = []
    for (let presses = 0; presses < 6; presses += 1) {
      await page.keyboard.press('Tab')
      order.push(
        await page.evaluate<string>('document.activeElement.textContent.trim() || document.activeElement.id'),
      )
    }
    t.match(order.join(' | '), /^Skip to content \| Heliograph \| q \| /)
    t.equal(
      await page.evaluate<string>("getComputedStyle(document.querySelector('button')).transitionDuration"),
      '0s',
      'nothing moves for those who want it so',
    )
    await page.getByLabel('Address', { exact: true }).fill('no@x')
    await page.evaluate("document.querySelector('main form').noValidate = true")
    await page.getByLabel('Address', { exact: true }).fill('no')
    await page.getByRole('button', { name: 'Send', exact: true }).click()
    await page.getByText('Address must be an email address.').last().waitFor()
    t.match(
      await page.evaluate<string>('document.activeElement.outerHTML'),
      /name="address"[^>]* value="no"[^>]* aria-invalid="true"/,
      'the focus is in the field with the fault',
    )
  })

  t.test('a list is light, loads nothing from elsewhere, and nothing in it jumps', async (t) => {
    const { page } = await signInWith(browser, service, { t, team: lived.team.id })
    const bytes = new Map<string, number>()
    page.on('response', async (response) => {
      const body = await response.body().catch(() => Buffer.alloc(0))
      bytes.set(response.url(), body.byteLength)
    })
    await page.goto(`${home}/teams/${lived.team.id}/emails`, { waitUntil: 'networkidle' })
    t.equal(await page.locator('tbody tr').count(), 50)
    t.ok([...bytes.keys()].every((url) => url.startsWith(service.base)))
    const size = bytes.get(page.url()) ?? 0
    t.ok(size > 10_000 && size <= 60 * 1024, `${size} bytes`)
    const moved = await page.evaluate<number>(`new Promise((resolve) => {
      let sum = 0
      new PerformanceObserver((list) => {
        for (const { value } of list.getEntries()) sum += value
      }).observe({ type: 'layout-shift', buffered: true })
      setTimeout(() => resolve(sum), 100)
    })`)
    t.ok(moved < 0.02, `moved by ${moved}`)
    const height = await page.evaluate<number>("document.querySelector('tbody tr').offsetHeight")
    t.ok(height >= 44 && height <= 45, `a row is ${height} px high`)
  })
}
