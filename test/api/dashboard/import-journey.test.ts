/** An import in a real browser: upload, mapping, check, start, and correcting rejected records. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser, Locator, Page } from 'playwright-core'
import { fits, isAccessible, launchBrowser, signInWith } from '../../support/browser.ts'
import { world } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { startWorker, until } from '../../support/worker.ts'

const FOLDER = process.env.DASHBOARD_LOOKS

const browser = await launchBrowser(t, 'the import of a list')
if (browser) await journey(browser)

/** A list from another service, with one invalid address. */
const LIST = [
  'E-Mail Address;First Name;Stadt;Newsletter;Source of the subscription',
  'ana@example.org;Ana;Köln;yes;the form at the foot of the page that asks for a discount',
  'ben@example.org;Ben;Graz;no;shop',
  'chen.example.org;Chen;Linz;yes;shop',
  'ana.lindqvist-featherstonehaugh@customer-relations.example.org;Ana;"Wien; 1010";yes;shop',
].join('\r\n')

async function journey(browser: Browser): Promise<void> {
  const { service, team } = await world(t)
  const here = `${service.base}/dashboard/teams/${team.id}`
  const said = (page: Page): Promise<string> => page.locator('main').innerText()
  /** Clicks and waits for the next page. */
  const follow = async (page: Page, locator: Locator): Promise<void> => {
    await Promise.all([page.waitForEvent('load'), locator.click()])
  }
  const press = (page: Page, name: string): Promise<void> =>
    follow(page, page.getByRole('button', { name, exact: true }))
  /** Fails unless the page is accessible and fits at each width. Takes screenshots like looks.test.ts. */
  const isFine = async (page: Page, about: string): Promise<void> => {
    await isAccessible(t, page, about)
    for (const width of [1_280, 390, 320]) {
      await page.setViewportSize({ width, height: 800 })
      await fits(t, page, `${about} at ${width} px`)
      for (const colorScheme of FOLDER ? (['dark', 'light'] as const) : []) {
        await page.emulateMedia({ colorScheme })
        const name = `import-${about.replaceAll(' ', '-')}-${width}-${colorScheme}.png`
        await page.screenshot({ path: join(FOLDER ?? '', name), fullPage: true })
      }
    }
    await page.setViewportSize({ width: 1_280, height: 800 })
  }
  const upload = async (page: Page, buffer: Buffer): Promise<void> => {
    await page.getByLabel('CSV file').setInputFiles({ name: 'list.csv', mimeType: 'text/csv', buffer })
    await press(page, 'Upload')
  }
  const done = async (page: Page): Promise<void> => {
    await until('it is over', async () => {
      await page.reload()
      return /^Done/im.test(await said(page))
    })
  }

  t.test('imports a list, and its rejected records after correction', async (t) => {
    await startWorker(t, service)
    const { page, context } = await signInWith(browser, service, { t, team: team.id })
    await page.goto(`${here}/topics`)
    await page.getByText('Create a topic').first().click()
    await page.locator('[name="name"]').first().fill('News')
    await press(page, 'Create topic')
    await page.goto(`${here}/contacts`)
    await follow(page, page.locator('main a[href$="/contacts/import"]').first())
    await isFine(page, 'the upload')
    await upload(page, Buffer.from('email\n'))
    t.match(await said(page), /no records/)
    await upload(page, Buffer.from(LIST, 'latin1'))
    t.match(await said(page), /Windows-1252[\s\S]*semicolons/)
    t.equal(await page.getByLabel('E-Mail Address', { exact: true }).inputValue(), 'email')
    await page.locator('summary', { hasText: 'The first 4 records' }).click()
    await isFine(page, 'the columns')
    await page.getByLabel('First Name', { exact: true }).selectOption('Property')
    await page.getByLabel('Property name for First Name').fill('Stadt')
    await page.getByLabel('Newsletter', { exact: true }).selectOption({ label: 'Topic News (yes or no)' })
    await page.getByLabel('Source of the subscription', { exact: true }).selectOption('Do not import')
    await press(page, 'Continue')
    t.match(await said(page), /Property name for Stadt is already the name of another property/)
    t.match(
      await page.evaluate<string>('document.activeElement.outerHTML'),
      /value="Stadt"[^>]* aria-invalid="true"/,
      'the focus is in the field with the fault, and what was chosen is kept',
    )
    t.match(await page.getByLabel('Newsletter', { exact: true }).inputValue(), /^topic:/)
    for (const [column, name] of [
      ['First Name', 'name'],
      ['Stadt', 'city'],
    ])
      await page.getByLabel(`Property name for ${column}`).fill(name ?? '')
    await press(page, 'Continue')
    t.match(
      await said(page),
      /New contacts\s+3[\s\S]*Rejected\s+1[\s\S]*4\s+E-Mail Address\s+chen\.example\.org\s+must be an email/i,
    )
    await isFine(page, 'what would happen')
    await press(page, 'Import 3 contacts')
    await done(page)
    t.match(await said(page), /3 contacts stored[\s\S]*1 record rejected/)
    await isFine(page, 'the result')
    await service.call('POST', '/v1/contacts', { key: team.key, body: { email: 'other@example.org' } })
    await follow(page, page.getByRole('link', { name: 'Show them' }))
    t.match(await said(page), /list\.csv[\s\S]*ben@example\.org/)
    t.equal(await page.locator('tbody tr').count(), 3, 'those of the import alone')
    await page.goBack()
    const { body } = await service.call('GET', '/v1/contacts/ana@example.org', { key: team.key })
    t.match(body, { properties: { name: 'Ana', city: 'Köln' }, subscribed_topic_ids: [String] })
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: 'Rejected records as CSV' }).click(),
    ])
    const refused = await readFile(await download.path(), 'utf8')
    await page.goto(`${here}/contacts/import`)
    await upload(page, Buffer.from(refused.replace('chen.', 'chen@')))
    t.equal(await page.getByLabel('Property name for Stadt').inputValue(), 'city', 'as it was chosen before')
    await press(page, 'Continue')
    t.match(await said(page), /New contacts\s+1[\s\S]*Rejected\s+0/i)
    await press(page, 'Import 1 contact')
    await done(page)
    const corrected = await service.call('GET', '/v1/contacts/chen@example.org', { key: team.key })
    t.match(corrected.body, { properties: { name: 'Chen', city: 'Linz' }, subscribed_topic_ids: [String] })
    await context.close()
  })

  t.test('imports suppressions, adds one manually and lifts one', async (t) => {
    await startWorker(t, service)
    const { page, context } = await signInWith(browser, service, { t, team: team.id })
    await page.goto(`${here}/suppressions`)
    await follow(page, page.getByRole('link', { name: 'Import', exact: true }))
    await isFine(page, 'the upload of suppressions')
    await upload(page, Buffer.from('email,status\ngone@example.org,bounced\nana@example.org,complained\n'))
    await page.getByLabel('Reason', { exact: true }).fill('from the service that we leave')
    await isFine(page, 'the columns of suppressions')
    await press(page, 'Continue')
    await press(page, 'Import 2 addresses')
    await done(page)
    t.match(await said(page), /2 addresses suppressed/)
    await page.goto(`${here}/suppressions`)
    await page.locator('summary', { hasText: 'Add a suppression' }).click()
    await isFine(page, 'suppressions')
    await page.getByLabel('Email address').fill('never@example.org')
    await page.getByLabel('Reason').fill('asked by post')
    await press(page, 'Suppress address')
    t.match(await said(page), /never@example\.org was suppressed/)
    await follow(page, page.locator('td a', { hasText: 'ana@' }))
    t.match(await said(page), /Suppressed: complaint, added manually/)
    await page.getByLabel('More actions').click()
    await page.locator('summary', { hasText: 'Lift the suppression' }).click()
    await page.getByLabel('Reason').fill('she asked for it')
    await press(page, 'Lift suppression')
    t.match(await said(page), /The suppression is lifted/)
    await context.close()
  })
}
