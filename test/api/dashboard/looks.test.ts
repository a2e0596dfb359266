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

async function pictures(page: Page, path: string, width: number): Promise<void> {
  await page.setViewportSize({ width, height: 800 })
  const file = path.replace(/[0-9a-f-]{36}/g, 'ID').replace(/[^\w.-]+/g, '_')
  for (const colorScheme of ['dark', 'light'] as const) {
    await page.emulateMedia({ colorScheme })
    const name = `${file}-${width}-${colorScheme}.png`
    await page.screenshot({ path: join(FOLDER ?? '', name), fullPage: width > 390 })
  }
}

async function looks(browser: Browser): Promise<void> {
  const service = await startService(t, {
    dashboard: { lookupTxt: async () => ['v=spf1 include:example.net ~all'] },
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
}
