/**
 * The main journeys in a real browser, counted in steps. A click, a choice, a key and a filled field are one
 * step each. A journey fails if it needs more steps than its limit. Skipped without Chromium.
 */
import type { Browser, Page } from 'playwright-core'
import { v7 as uuidv7 } from 'uuid'
import { createTopic } from '../../../db/audience/contacts/topics.ts'
import { saveTemplate } from '../../../db/content/templates/save.ts'
import { broadcastsOfTeam } from '../../../db/messages/broadcasts/broadcasts.sql.ts'
import { addEndpoint } from '../../../db/messages/webhooks/endpoints.ts'
import { networksIn } from '../../../db/process/public-address.ts'
import { JOBS } from '../../../db/queue/jobs.ts'
import { storeSignOfLife } from '../../../db/stats/fleet/fleet.sql.ts'
import { keysOf } from '../../../db/validation/keys.ts'
import { recordBounce } from '../../support/bounce.ts'
import { fits, launchBrowser, signInWith } from '../../support/browser.ts'
import { idleGauges } from '../../support/gauges.ts'
import { type Hand, handOf } from '../../support/hand.ts'
import { startReceiver } from '../../support/receiver.ts'
import { anEmail, sendEmail, world } from '../../support/service.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t, { type Test } from '../../support/tap.ts'
import { startWorker, until } from '../../support/worker.ts'

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true }
const BERLIN = 'Europe/Berlin'
const LOOPBACK = networksIn(['127.0.0.0/8'])

/** A list of 5,000 contacts from a spreadsheet, 50 of them without an address. */
const LIST = [
  'E-mail;Name',
  ...Array.from(
    { length: 5_000 },
    (_, at) => `${at % 100 === 50 ? 'none' : `p${at}@example.org`};Person ${at}`,
  ),
].join('\r\n')

const browser = await launchBrowser(t, 'journeys counted in steps')
if (browser) await journeys(browser)

async function journeys(browser: Browser): Promise<void> {
  const { service, call, database, team } = await world(t, {
    publicUrl: 'http://localhost',
    team: { contact_limit: 10_000, email_limit: 10_000 },
  })
  const sink = await startSmtpSink(t)
  await startWorker(t, service, { smtp_url: sink.url })
  const here = `${service.base}/dashboard/teams/${team.id}`
  const said = (page: Page): Promise<string> => page.locator('main').innerText()

  type Person = Omit<Parameters<typeof signInWith>[2], 't' | 'team'>
  /** @param most maximum number of steps. @param window options of the browser. */
  const journey = (
    { what, most, person, window = {} }: { what: string; most: number; person: Person; window?: object },
    walk: (hand: Hand, t: Test) => Promise<void>,
  ) =>
    t.test(`${what}: ${most === 1 ? 'one step' : `at most ${most} steps`}`, async (t) => {
      const rights = { operator: false, ...person }
      const { page, context } = await signInWith(browser, service, { t, team: team.id, ...rights }, window)
      const hand = handOf(page)
      await walk(hand, t)
      t.ok(hand.steps() <= most, `${hand.steps()} steps`)
      await context.close()
    })

  // signInWith has already clicked the button of the link, which is the fifth step.
  await journey(
    {
      what: 'from the sign-in link to a test email that has arrived',
      most: 5 - 1,
      person: { role: 'owner' },
    },
    async ({ page, follow, click, press }, t) => {
      await follow(page.getByRole('link', { name: 'Send a test email' }))
      await click(page.locator('summary', { hasText: 'Send a test email' }))
      await press('Send test email')
      await until('it has arrived', () => sink.messages().length === 1)
      await page.locator('#state', { hasText: 'sent' }).waitFor()
      t.match(sink.last().raw.toString(), 'Subject: A test email from Heliograph')
    },
  )

  await journey(
    {
      what: 'an undelivered invoice, found by name and resent to the corrected address',
      most: 6,
      person: { role: 'editor', email: 'support@example.com' },
    },
    async ({ page, follow, type, click, press, enter }, t) => {
      const to = ['Erika Mustermann <erika@exampel.org>']
      const id = await sendEmail({ call }, team, { to, subject: 'Your invoice' })
      await recordBounce(service, { team_id: team.id, email_id: id }, { recipient: 'erika@exampel.org' })
      await type(page.getByRole('searchbox').first(), 'mustermann')
      await enter()
      await follow(page.getByRole('link', { name: 'Your invoice' }))
      t.match(await said(page), 'Bounced: the mailbox does not exist.')
      await click(page.locator('summary', { hasText: 'Send to a corrected address' }))
      await type(page.getByLabel('Corrected address'), 'erika@example.org')
      await press('Send to this address')
      await until('it has arrived', () => sink.last().rcpt_to[0] === 'erika@example.org')
      t.match(sink.last().raw.toString(), /^To: Erika Mustermann <erika@example\.org>/m)
    },
  )

  const topic = await database.transaction(async (tx) => {
    const by = { tx, now: new Date(), actor: 'ana@example.com' }
    const html = '<p>Dear {{Name}}, <a href="{{unsubscribe_url}}">no more of these</a></p>'
    await saveTemplate(by, team.id, { name: 'Spring', html, text: '' })
    return createTopic(by, team.id, { name: 'News' })
  })

  // On a phone, opening the menu adds two steps.
  await journey(
    {
      what: 'from a CSV of 5,000 rows, 50 of them bad, to a broadcast at 9:00 in Berlin, at 390 px',
      most: 20,
      person: { role: 'editor', email: 'marketing@example.com' },
      window: { ...PHONE, timezoneId: BERLIN },
    },
    async ({ page, follow, press, click, type, file }, t) => {
      const menu = async (name: string) => {
        await click(page.getByRole('link', { name: 'Menu' }))
        await follow(page.locator('nav').getByRole('link', { name, exact: true }))
      }
      await menu('Contacts')
      await follow(page.getByRole('link', { name: 'Import from CSV' }).first())
      await file(page.getByLabel('CSV file'), LIST)
      await press('Upload')
      await click(page.getByLabel('News'))
      await press('Continue')
      await fits(t, page, 'what would happen')
      await press('Import 5,000 records')
      await page.getByText('4,950 contacts stored.').first().waitFor()
      t.match(await said(page), /50 records rejected[\s\S]*none\s+must be an email/i)
      await menu('Broadcasts')
      await follow(page.getByRole('link', { name: 'Create a broadcast' }))
      await type(page.getByLabel('Name', { exact: true }), 'Spring')
      await type(page.getByLabel('Subject'), 'Spring is here')
      await press('Continue')
      await fits(t, page, 'whom it goes to')
      await click(page.getByLabel('News (4,950)').first())
      await page.locator('#audience', { hasText: '4,950' }).waitFor()
      await press('Continue')
      const day = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10)
      await type(page.getByLabel('Start at'), `${day}T09:00`)
      await press('Continue to review')
      t.match(await said(page), 'Nothing is missing.')
      await press('Schedule')
      const question = await said(page)
      t.match(question, /for [^?]*, 09:00 in Europe\/Berlin [^?]*\? It goes to 4,950 contacts of News\./)
      await press('Schedule')
      t.match(await page.locator('.notice').innerText(), 'Spring is scheduled.')
      const [scheduled] = await broadcastsOfTeam(database, team.id, { limit: 1 })
      t.match(scheduled, { state: 'scheduled', topic_ids: [topic.id] })
      const hour = new Date(scheduled?.send_at ?? '').toLocaleTimeString('en-GB', { timeZone: BERLIN })
      t.equal(hour, '09:00:00')
    },
  )

  await journey(
    {
      what: 'a broken webhook: noticed on the overview, enabled, missed events sent',
      most: 8,
      person: { role: 'owner' },
    },
    async ({ page, follow, press, click }, t) => {
      const receiver = await startReceiver(t)
      await database.transaction((tx) =>
        addEndpoint({ ...service.deps, tx, now: new Date(), actor: 'cli', allowed: LOOPBACK }, team.id, {
          url: receiver.url,
          name: 'Shop',
          types: ['email.sent'],
        }),
      )
      // 410 disables the webhook.
      receiver.answer = (_, response) => response.writeHead(410).end()
      await call('POST', '/v1/emails', { key: team.key, body: anEmail() })
      await until('it is disabled', async () => {
        await page.goto(here)
        return (await said(page)).includes('The webhook Shop was disabled')
      })
      receiver.answer = null
      const missed = receiver.received.length
      await follow(page.getByRole('link', { name: 'Show webhook' }))
      await press('Enable webhook')
      await click(page.locator('summary', { hasText: 'Send events again' }))
      await press('Continue')
      await press('Send again')
      t.match(await page.locator('.notice').innerText(), 'queued to be sent again')
      await until('they are there', () => receiver.received.length > missed)
    },
  )

  await journey(
    {
      what: 'is everything going out? (operator)',
      most: 1,
      person: { role: 'owner', email: 'operator@example.com', operator: true },
    },
    async ({ page, follow }, t) => {
      const life = { id: uuidv7(), kind: 'worker', host: 'w1', pid: 1, queues: keysOf(JOBS) } as const
      const own = { gauges: idleGauges(), senders: { 'deliver-email': 'smtp:mail.example.test:587' } }
      const sign = { ...life, ...own, completed: { 'deliver-email': 12 }, started_at: new Date() }
      await storeSignOfLife(database, sign, [])
      await follow(page.getByRole('list', { name: 'Operator' }).getByRole('link', { name: 'Overview' }))
      t.match(await page.locator('#state').innerText(), /Is everything going out\?\s+yes/)
    },
  )
}
