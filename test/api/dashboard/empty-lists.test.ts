/** Empty lists of a new team, in a real browser. */
import type { Browser } from 'playwright-core'
import { launchBrowser, signInWith } from '../../support/browser.ts'
import { isWanted, lookAt, pathsWith } from '../../support/looks.ts'
import { world } from '../../support/service.ts'
import t from '../../support/tap.ts'

const browser = await launchBrowser(t, 'lists without anything in them')
if (browser) await looks(browser)

async function looks(browser: Browser): Promise<void> {
  const { service, team } = await world(t)

  t.test('lists of a new team are accessible and explain themselves', async (t) => {
    const { page } = await signInWith(browser, service, { t, team: team.id })
    const here = `/teams/${team.id}`
    const paths = pathsWith({ '/teams/:team': team.id }).filter((path) => path.startsWith(here))
    t.ok(paths.length > 15)
    const begins: Record<string, string> = {
      '/emails': 'How to send',
      '/whatsapp': 'How to send',
      '/broadcasts': 'Create a broadcast',
      '/contacts': 'Import from CSV',
    }
    const forms: Record<string, string> = {
      '/topics': 'Create a topic',
      '/keys': 'Create a key',
      '/people': 'Invite a colleague',
      '/domains': 'Add a domain',
      '/webhooks': 'Add a webhook',
      '/whatsapp-templates': 'Sync now',
    }
    let begun = 0
    for (const path of paths) {
      const list = path.slice(here.length)
      if (!isWanted(path)) continue
      await lookAt(t, page, `${service.base}/dashboard${path}`, `empty${list}`)
      // An empty list whose objects are created here has a link, a form or a button for the first one.
      const [begin, form] = [begins[list], forms[list]]
      const black = await page.locator('main :is(.acts, .empty) .button:not(.quiet)').allTextContents()
      t.ok(black.length <= 1, `${list}: black buttons: ${black}`)
      if (begin) t.equal(await page.locator('.empty').getByRole('link', { name: begin }).count(), 1, list)
      if (form)
        t.ok(await page.locator('.acts :is(summary, button)', { hasText: form }).first().isVisible(), list)
      if (begin || form) begun += 1
    }
    t.ok(begun === Object.keys({ ...begins, ...forms }).length || !isWanted(''))
  })
}
