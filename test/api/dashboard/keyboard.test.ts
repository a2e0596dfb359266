/**
 * The main journeys by keyboard only, in a real browser. Each tab stop on the way must show its focus.
 * Skipped without Chromium.
 */

import type { Browser, Page } from 'playwright-core'
import { sql } from 'slonik'
import { recordBounce } from '../../support/bounce.ts'
import { launchBrowser } from '../../support/browser.ts'
import { enter, focused, follow, press, says, signInByKeys, tab, tabTo, type } from '../../support/keys.ts'
import { pauseSender } from '../../support/senders.ts'
import { anEmail, world } from '../../support/service.ts'
import t, { type Test } from '../../support/tap.ts'

const browser = await launchBrowser(t, 'journeys by the keyboard')
if (browser) await journeys(browser)

async function journeys(browser: Browser): Promise<void> {
  const dns = new Map<string, string[]>()
  const { service, team } = await world(t, { dashboard: { lookupTxt: async (name) => dns.get(name) ?? [] } })
  const here = `${service.base}/dashboard/teams/${team.id}`
  const { key } = team
  const body = anEmail({ to: ['gone@example.org'], subject: 'Your invoice' })
  const { body: gone } = await service.call('POST', '/v1/emails', { key, body })
  await service.call('POST', '/v1/contacts', { key, body: { email: 'gone@example.org' } })
  const bounce = { recipient: 'gone@example.org', detail: '550 5.1.1 no such user' }
  await recordBounce(service, { team_id: team.id, email_id: gone.id }, bounce)

  const signIn = (t: Test): Promise<Page> => signInByKeys(browser, service, { t, team: team.id })

  t.test('has a skip link, and menus restore the focus', async (t) => {
    const page = await signIn(t)
    t.equal((await tab(t, page)).name, 'Skip to content')
    await page.keyboard.press('Enter')
    t.ok((await tab(t, page)).inMain, 'what follows is the page itself')
    await page.goto(`${here}/emails`)
    await press(t, page, /^You are ana@example\.com/)
    t.equal((await tab(t, page)).name, 'Your account')
    await page.keyboard.press('Escape')
    t.match((await focused(page)).name, /^You are ana@example\.com/)
    t.equal(await page.locator('details.menu[open]').count(), 0)
    await page.setViewportSize({ width: 390, height: 800 })
    await page.goto(`${here}/emails`)
    await press(t, page, 'Menu')
    await follow(t, page, 'Contacts')
    t.equal(page.url(), `${here}/contacts`)
  })

  t.test('finds and resends an email, lifts the suppression and requeues', async (t) => {
    const page = await signIn(t)
    await page.keyboard.press('/')
    await page.keyboard.type('gone@example.org')
    await enter(page)
    await follow(t, page, 'Your invoice')
    await says(page, 'Bounced: the mailbox does not exist.')
    await press(t, page, 'Send to a corrected address')
    await type(t, page, 'Corrected address', 'back@example.org')
    await enter(page)
    await says(page, 'Sent to back@example.org. This is the new email')
    await page.goto(`${here}/emails/${gone.id}`)
    const timeline = page.locator('#timeline')
    t.match(await timeline.innerText(), /Bounced[\s\S]*550 5\.1\.1 no such user/)
    await follow(t, page, /^Show the suppression/)
    await says(page, 'hard bounce')
    await press(t, page, 'Lift the suppression')
    await page.locator('[name="reason"]:focus').waitFor()
    await page.keyboard.type('the mailbox is back')
    await enter(page)
    await says(page, /The suppression is lifted/)
    t.match(await page.locator('main').innerText(), 'subscribed')
    await follow(t, page, 'Your invoice')
    await follow(t, page, 'Send again')
    await follow(t, page, 'Send again')
    await says(page, 'Queued to be sent again.')
    t.match(await page.locator('#state').innerText(), 'queued')
    t.match(await timeline.innerText(), 'Queued again')
  })

  t.test('adds and verifies a domain', async (t) => {
    const page = await signIn(t)
    await follow(t, page, 'Domains')
    await press(t, page, 'Add a domain')
    await type(t, page, 'Domain', 'mail.example.net')
    await enter(page)
    const record = page.locator('.records > li', { hasText: 'DKIM' })
    await record.getByText('missing').waitFor()
    await press(t, page, 'v=DKIM1; k=rsa; p=…')
    const [name = '', , value = ''] = await record.locator('code').allInnerTexts()
    dns.set(name, [value])
    await follow(t, page, 'Verify now')
    await says(page, 'mail.example.net is verified')
  })

  t.test('creates a key, and revokes it after confirmation', async (t) => {
    const page = await signIn(t)
    await follow(t, page, 'API keys')
    await press(t, page, 'Create a key')
    await type(t, page, 'Name', 'shop')
    await tabTo(t, page, 'contacts:read: read contacts')
    await page.keyboard.press('Space')
    await follow(t, page, 'Create key')
    await page.locator('#secret').waitFor()
    await press(t, page, /^More actions/)
    await follow(t, page, 'Revoke key')
    await page.locator('#confirm').waitFor()
    await follow(t, page, /^Revoke/)
    await page.locator('#state').getByText('revoked').waitFor()
  })

  t.test('finds the paused sender from the overview and resumes it', async (t) => {
    await pauseSender(
      service.database,
      { key: 'smtp:relay.test', ceiling: 100 },
      3_600,
      '554 5.3.2 Closed for repairs',
    )
    await service.database.query(sql.unsafe`
      insert into pgboss.job (name, data) values ('deliver-email', '{"team_id": "1"}')`)
    const page = await signIn(t)
    await says(page, 'Nothing goes out through smtp:relay.test')
    await follow(t, page, 'Queues')
    await says(page, 'The queue Emails is waiting for smtp:relay.test')
    await follow(t, page, 'Senders')
    await follow(t, page, /^Resume now/)
    await says(page, 'resumed by an operator')
  })

  t.test('pauses a queue after confirmation, and resumes it', async (t) => {
    const page = await signIn(t)
    await follow(t, page, 'Queues')
    await follow(t, page, 'Pause queue Emails')
    await page.locator('#confirm').waitFor()
    await follow(t, page, 'Pause queue')
    await follow(t, page, /^Resume queue Emails/)
    await page.getByRole('button', { name: 'Pause queue Emails' }).waitFor()
  })

  t.test('filters a list, and an error focuses its field', async (t) => {
    const page = await signIn(t)
    await page.goto(`${here}/whatsapp`)
    await press(t, page, 'More filters')
    await type(t, page, 'Number', 'nobody')
    await enter(page)
    await says(page, 'Number must be a phone number')
    t.match(await focused(page), { name: 'Number', wrong: /^$/ })
  })

  t.test('every tab stop of a narrow page shows its focus', async (t) => {
    const page = await signIn(t)
    await page.setViewportSize({ width: 390, height: 800 })
    for (const path of ['', '/emails', `/emails/${gone.id}`, '/contacts/gone@example.org']) {
      await page.goto(here + path)
      const names = new Set<string>()
      for (let stops = 0; stops < 70; stops += 1) {
        const { name } = await tab(t, page)
        // The first stop follows the last one.
        if (name === 'Skip to content' && names.has(name)) break
        names.add(name)
      }
      t.ok(names.size > 5, path)
    }
  })
}
