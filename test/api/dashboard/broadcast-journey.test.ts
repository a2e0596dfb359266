/** A first broadcast on a phone in a real browser, until its recipient changes topics. */

import type { Browser, Page } from 'playwright-core'
import { utc } from '../../../api/dashboard/components/cell.ts'
import { topicsOfTeam } from '../../../db/audience/contacts/topics.sql.ts'
import { fits, isAccessible, launchBrowser, signInWith } from '../../support/browser.ts'
import { world } from '../../support/service.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t from '../../support/tap.ts'
import { startWorker, until } from '../../support/worker.ts'

const PHONE = {
  viewport: { width: 390, height: 844 },
  hasTouch: true,
  isMobile: true,
  timezoneId: 'Africa/Nairobi',
}

const browser = await launchBrowser(t, 'a marketer’s first broadcast')
if (browser) await journey(browser)

async function journey(browser: Browser): Promise<void> {
  const { service, team } = await world(t, { publicUrl: 'http://localhost' })
  const here = `${service.base}/dashboard/teams/${team.id}`

  const said = (page: Page): Promise<string> => page.locator('main').innerText()
  /** Fills the form that has this button, and clicks it. */
  const submit = async (page: Page, name: string, fields: Record<string, string> = {}): Promise<void> => {
    const form = page.locator('form', {
      has: page.getByRole('button', { name, exact: true, includeHidden: true }),
    })
    const closed = page.locator('details:not([open])', { has: form }).locator('> summary')
    while (await closed.count()) await closed.first().click()
    for (const [field, value] of Object.entries(fields))
      await form.first().locator(`[name="${field}"]`).fill(value)
    await form.first().getByRole('button', { name, exact: true }).click()
    await page.waitForLoadState()
  }

  t.test('creates and sends a first broadcast at 390 px', async (t) => {
    const sink = await startSmtpSink(t)
    await startWorker(t, service, { smtp_url: sink.url })
    const { page, context } = await signInWith(browser, service, { t, team: team.id }, PHONE)
    const isFine = async (about: string): Promise<void> => {
      await fits(t, page, about)
      await isAccessible(t, page, about)
    }
    await page.goto(`${here}/broadcasts/new`)
    t.match(await said(page), /No topics yet[\s\S]*No templates yet/)
    await page.goto(`${here}/topics`)
    for (const name of ['News', 'Offers']) await submit(page, 'Create topic', { name })
    await page.goto(`${here}/templates`)
    const html = '<p>Dear {{name}}, <a href="{{unsubscribe_url}}">leave</a></p>'
    await submit(page, 'Create template', { name: 'Spring', html })
    for (const [email, properties] of [
      ['ana@example.org', 'name: Ana'],
      ['ben@example.org', 'city: Graz'],
    ] as const) {
      await page.goto(`${here}/contacts`)
      const summary = page.locator('details:not([open]) > summary', { hasText: 'Add a contact' })
      if (await summary.count()) await summary.click()
      await page.getByLabel('News').last().check()
      await submit(page, 'Add contact', { email, properties })
    }
    await page.goto(`${here}/broadcasts/new`)
    await isFine('a new broadcast')
    await page.locator('[name="template_id"]').selectOption({ label: 'Spring' })
    await submit(page, 'Continue', {
      name: 'Spring',
      from: 'Acme <hello@example.com>',
      subject: 'For {{name}}',
    })
    await isFine('its audience')
    await page.getByLabel('News (2)').first().check()
    await page.locator('#audience', { hasText: '2' }).waitFor()
    await submit(page, 'Continue')
    await isFine('its time')
    await submit(page, 'Continue to review')
    t.match(await said(page), /Nothing is missing[\s\S]*Missing a variable\s+1\s+Skipped: no value for name/)
    await isFine('a draft')
    const tomorrow = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10)
    await page.getByLabel('More actions').click()
    await page.getByRole('link', { name: 'Edit time' }).click()
    await submit(page, 'Continue to review', { send_at: `${tomorrow}T18:00` })
    await submit(page, 'Schedule')
    t.match(await said(page), `, 18:00 in Africa/Nairobi (${utc(`${tomorrow}T15:00:00Z`)})?`)
    await page.goBack()
    await page.getByLabel('More actions').click()
    await page.getByRole('link', { name: 'Edit time' }).click()
    await submit(page, 'Continue to review', { send_at: '' })
    await submit(page, 'Send test', { to: 'me@example.net', contact: 'ana@example.org' })
    await until('the test is there', () => sink.messages().length === 1)
    await submit(page, 'Send now')
    t.match(await said(page), /Send “Spring” to 2 contacts of News\?/)
    await isFine('the question before it starts')
    await submit(page, 'Send now')
    await page.getByText('Sent: 1 of 2 contacts, 1 skipped').waitFor()
    await until('it is sent', async () => {
      await page.reload()
      return /Sent: \d/.test(await said(page))
    })
    await isFine('a broadcast that is sent')
    await page.locator('main a[href$="/skips"]').first().click()
    t.match(await said(page), /ben@example\.org[\s\S]*No value for name/)
    await isFine('who was skipped')
    const mail = sink.last()
    t.strictSame(mail.rcpt_to, ['ana@example.org'])
    const link = /^List-Unsubscribe: ?<http:\/\/localhost(\/u\/[\w-]+)>/m.exec(
      mail.raw.toString().replaceAll(/\r\n[ \t]+/g, ''),
    )
    const topics = await topicsOfTeam(service.database, team.id)
    const topic_ids = topics.map(({ id }) => id)
    await service.call('PATCH', '/v1/contacts/ana@example.org', { key: team.key, body: { topic_ids } })
    await page.goto(`${service.base}${link?.[1] ?? ''}`)
    await fits(t, page, 'the page of who leaves')
    await page.locator('a[href*="preferences"]').click()
    await page.waitForLoadState()
    await page.getByLabel('News').uncheck()
    t.ok(await page.getByLabel('Offers').isChecked())
    await page.getByRole('button').first().click()
    await page.waitForLoadState()
    const { body } = await service.call('GET', '/v1/contacts/ana@example.org', { key: team.key })
    t.strictSame(body.subscribed_topic_ids, [topics.find(({ name }) => name === 'Offers')?.id])
    t.equal(body.status, 'subscribed')
    await context.close()
  })
}
