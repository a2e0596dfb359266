/** Imports and templates by keyboard only, like keyboard.test.ts. Skipped without Chromium. */
import type { Browser, Page } from 'playwright-core'
import { createTopic } from '../../../db/audience/contacts/topics.ts'
import { launchBrowser } from '../../support/browser.ts'
import { choose, follow, pickFile, press, says, signInByKeys, tabTo, type } from '../../support/keys.ts'
import { world } from '../../support/service.ts'
import t, { type Test } from '../../support/tap.ts'
import { startWorker, until } from '../../support/worker.ts'

const browser = await launchBrowser(t, 'what is written by the keyboard')
if (browser) await journeys(browser)

async function journeys(browser: Browser): Promise<void> {
  const { service, team } = await world(t)
  const { key } = team
  const signIn = (t: Test): Promise<Page> => signInByKeys(browser, service, { t, team: team.id })

  t.test('maps, checks and imports a list', async (t) => {
    const page = await signIn(t)
    await service.database.transaction((tx) =>
      createTopic({ tx, now: new Date(), actor: 'ana@example.com' }, team.id, { name: 'News' }),
    )
    await follow(t, page, 'Contacts')
    await follow(t, page, 'Import from CSV')
    const list =
      'E-Mail Address;Stadt;Newsletter;Source\nlea@example.org;Graz;yes;shop\nno address;Linz;no;shop\n'
    await pickFile(t, page, /^CSV file/, {
      name: 'list.csv',
      mimeType: 'text/csv',
      buffer: Buffer.from(list),
    })
    await follow(t, page, 'Upload')
    await says(page, 'semicolons')
    await type(t, page, 'Property name for Stadt', 'city')
    await choose(t, page, 'Newsletter', 'Topic News (yes or no)')
    await choose(t, page, 'Source', 'Do not import')
    await follow(t, page, 'Continue')
    await says(page, 'Must be an email address')
    await follow(t, page, 'Import 1 contact')
    const worker = await startWorker(t, service)
    await until('it is over', async () => {
      await page.reload()
      return /1 contact stored/.test(await page.locator('main').innerText())
    })
    await worker.stop()
    await tabTo(t, page, /^Rejected records as CSV/)
    const { body } = await service.call('GET', '/v1/contacts/lea@example.org', { key })
    t.strictSame(body.properties, { city: 'Graz' })
    t.equal(body.subscribed_topic_ids.length, 1)
  })

  t.test('creates, edits, compares and publishes a template', async (t) => {
    const page = await signIn(t)
    await follow(t, page, 'Templates')
    await press(t, page, 'Create a template')
    await type(t, page, 'Name', 'Welcome')
    await type(t, page, 'HTML', '<p>Hi {{name}}</p>')
    await follow(t, page, 'Create template')
    await type(t, page, 'name', 'Ana')
    await press(t, page, 'Preview unsaved text')
    await page.frameLocator('iframe').getByText('Hi Ana').first().waitFor()
    await type(t, page, 'HTML', '<p>Dear {{name}}</p>')
    await follow(t, page, 'Save the draft')
    await says(page, 'unpublished changes')
    await follow(t, page, /^Review changes/)
    await says(page, '+ <p>Dear')
    await follow(t, page, 'Publish draft')
    await says(page, 'Publish the draft of Welcome?')
    await follow(t, page, 'Publish draft')
    await says(page, 'The draft is published. Variables: name.')
    await follow(t, page, 'Restore version v1')
    await follow(t, page, 'Restore version')
    await page.frameLocator('iframe').getByText('Hi [name]').first().waitFor()
  })
}
