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

  t.test('lists of a new team are accessible, fit and have an empty state', async (t) => {
    const { page } = await signInWith(browser, service, { t, team: team.id })
    const here = `/teams/${team.id}`
    const paths = pathsWith({ '/teams/:team': team.id }).filter((path) => path.startsWith(here))
    t.ok(paths.length > 15)
    for (const path of paths) {
      const name = `empty${path.slice(here.length)}`
      if (isWanted(path)) await lookAt(t, page, `${service.base}/dashboard${path}`, name)
    }
  })

  t.test('empty lists link to the next step', async (t) => {
    const { page } = await signInWith(browser, service, { t, team: team.id })
    const begins = {
      emails: 'How to send',
      whatsapp: 'How to send',
      broadcasts: 'New broadcast',
      contacts: 'Import from CSV',
    }
    for (const [list, words] of Object.entries(begins)) {
      await page.goto(`${service.base}/dashboard/teams/${team.id}/${list}`)
      t.equal(await page.locator('.empty').getByRole('link', { name: words }).count(), 1, list)
    }
    const forms = {
      topics: 'Add a topic',
      keys: 'New key',
      people: 'Invite a colleague',
      domains: 'Add a domain',
      webhooks: 'New webhook',
      'whatsapp-templates': 'Add a template',
    }
    for (const [list, words] of Object.entries(forms)) {
      await page.goto(`${service.base}/dashboard/teams/${team.id}/${list}`)
      t.ok(await page.locator('.acts summary', { hasText: words }).isVisible(), list)
    }
  })
}
