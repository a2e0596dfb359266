/**
 * The twenty tasks that users come to the dashboard for, each in its role. Each starts on the first page, and has
 * a maximum number of clicks. Filled fields and Enter aren't clicks.
 */
import type { Role } from '../../db/accounts/members/roles.ts'
import type { Hand } from '../support/hand.ts'

export type Task = {
  what: string
  role: Role | 'operator'
  /** Maximum number of clicks. */
  most: number
  /** Ends with what the page then shows. */
  walk: (hand: Hand) => Promise<unknown>
}

const TOMORROW = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10)

/** Follows a link of the navigation. */
const go = ({ page, follow }: Hand, name: string, group?: string): Promise<void> => {
  const nav = group === undefined ? page.locator('nav') : page.getByRole('list', { name: group })
  return follow(nav.getByRole('link', { name, exact: true }).first())
}

const opener = ({ page }: Hand, words: string) =>
  page.locator('main details:not([open]) > summary', { hasText: words }).first()

const openMenu = (hand: Hand) => hand.click(hand.page.getByLabel('More actions'))

const sees = ({ page }: Hand, words: string | RegExp) =>
  page.locator('main').getByText(words).first().waitFor()

async function search({ page, type, enter }: Hand, words: string): Promise<void> {
  await type(page.locator('#q'), words)
  await enter()
}

export const TASKS: readonly Task[] = [
  {
    what: 'find an invoice by its recipient, and send it to another address',
    role: 'editor',
    most: 3,
    async walk(hand) {
      const { page, follow, click, type, press } = hand
      await search(hand, 'lindqvist')
      await follow(
        page
          .locator('main')
          .getByRole('link', { name: /Your invoice/ })
          .first(),
      )
      await click(opener(hand, 'Send to a corrected address'))
      await type(page.getByLabel('Corrected address'), 'ana@example.org')
      await press('Send to this address')
      await sees(hand, /Sent to ana@example\.org/)
    },
  },
  {
    what: 'why an email bounced',
    role: 'viewer',
    most: 3,
    async walk(hand) {
      await go(hand, 'Emails')
      await hand.follow(
        hand.page
          .locator('main')
          .getByRole('link', { name: /^bounced/ })
          .first(),
      )
      await hand.follow(hand.page.locator('td.main a').first())
      await sees(hand, /Bounced/)
    },
  },
  {
    what: 'lift the suppression of a contact',
    role: 'editor',
    most: 6,
    async walk(hand) {
      const { page, follow, click, type, press } = hand
      await go(hand, 'Suppressions')
      await follow(page.locator('td a', { hasText: 'ana.lindqvist' }))
      await click(opener(hand, 'Lift the suppression'))
      await type(page.getByLabel('Reason'), 'The mailbox is back')
      await press('Lift suppression')
      await sees(hand, 'The suppression is lifted.')
    },
  },
  {
    what: 'import a list with bad rows',
    role: 'editor',
    most: 7,
    async walk(hand) {
      const { page, follow, click, file, press } = hand
      await go(hand, 'Contacts')
      await follow(page.getByRole('link', { name: 'Import from CSV' }).first())
      await file(page.getByLabel('CSV file'), 'email,city\nlea@example.org,Graz\nnone,Linz\n')
      await press('Upload')
      await click(page.getByLabel('Product news'))
      await press('Continue')
      await press('Import 1 contact')
      await sees(hand, /list\.csv/)
    },
  },
  {
    what: 'write a broadcast, test, schedule and cancel it',
    role: 'editor',
    most: 16,
    async walk(hand) {
      const { page, follow, click, type, press } = hand
      await go(hand, 'Broadcasts')
      await follow(page.getByRole('link', { name: 'Create a broadcast' }))
      await type(page.getByLabel('Name', { exact: true }), 'Spring')
      await type(page.getByLabel('Subject'), 'Spring is here')
      await page.locator('[name="template_id"]').selectOption({ label: 'Monthly news' })
      await press('Continue')
      await click(page.getByLabel(/Product news/).first())
      await press('Continue')
      await type(page.getByLabel('Start at'), `${TOMORROW}T09:00`)
      await press('Continue to review')
      await openMenu(hand)
      await click(opener(hand, 'Send a test'))
      await press('Send test')
      await press('Schedule')
      await press('Schedule')
      await openMenu(hand)
      await press('Cancel broadcast')
      await press('Cancel broadcast')
      await page.locator('#state', { hasText: 'cancelled' }).waitFor()
    },
  },
  {
    what: 'compare two versions of a template, and restore the older one',
    role: 'editor',
    most: 6,
    async walk(hand) {
      const { page, follow, press } = hand
      await go(hand, 'Templates')
      await follow(page.getByRole('link', { name: 'Monthly news', exact: true }))
      await follow(page.getByRole('link', { name: 'What changed' }).first())
      await press('Restore v1')
      await press('Restore version')
      await sees(hand, /v3/)
    },
  },
  {
    what: 'add a domain, and check its records',
    role: 'owner',
    most: 5,
    async walk(hand) {
      const { page, click, type, press } = hand
      await go(hand, 'Domains')
      await click(opener(hand, 'Add a domain'))
      await type(page.getByLabel('Domain', { exact: true }), 'mail.tasks.example')
      await press('Add domain')
      await press('Verify now')
      await sees(hand, /missing|different/)
    },
  },
  {
    what: 'rotate a key',
    role: 'owner',
    most: 7,
    async walk(hand) {
      await go(hand, 'API keys')
      await hand.follow(hand.page.locator('td.main a').first())
      await hand.click(opener(hand, 'Rotate'))
      await hand.press('Create the new key')
      await hand.page.locator('#secret').waitFor()
    },
  },
  {
    what: 'invite a colleague, and change the role',
    role: 'owner',
    most: 8,
    async walk(hand) {
      const { page, follow, click, type, press } = hand
      await go(hand, 'Members')
      await click(opener(hand, 'Invite a colleague'))
      await type(page.getByLabel('Email address'), 'lea@example.org')
      await click(page.locator('.act[open] [value=editor]'))
      await press('Invite')
      await follow(page.getByRole('link', { name: 'lea@example.org' }).first())
      await click(page.locator('[value=viewer]'))
      await press('Change the role')
      await press('Change the role')
      await sees(hand, /lea@example\.org is now viewer/)
    },
  },
  {
    what: 'who did what',
    role: 'owner',
    most: 2,
    async walk(hand) {
      await go(hand, 'Audit log')
      await hand.type(hand.page.getByLabel('By', { exact: true }), 'ana')
      await hand.enter()
      await hand.page.locator('tbody tr').first().waitFor()
    },
  },
  {
    what: 'what is stuck',
    role: 'operator',
    most: 1,
    async walk(hand) {
      await go(hand, 'Overview', 'Operator')
      await sees(hand, /Nothing goes out through .*|No worker is running|Nothing is stuck/)
    },
  },
  {
    what: 'pause a queue',
    role: 'operator',
    most: 3,
    async walk(hand) {
      await go(hand, 'Queues')
      await hand.press('Pause queue Emails')
      await hand.press('Pause queue')
      await hand.page.getByRole('button', { name: /^Resume queue Emails/ }).waitFor()
    },
  },
  {
    what: 'how much of the plan is used',
    role: 'viewer',
    most: 0,
    walk: (hand) => sees(hand, 'This period'),
  },
  {
    what: 'export and erase a person',
    role: 'owner',
    most: 5,
    async walk(hand) {
      const { page, follow, press } = hand
      await search(hand, 'eleni')
      await follow(
        page
          .locator('main')
          .getByRole('link', { name: /^eleni/ })
          .first(),
      )
      await openMenu(hand)
      const exporting = page.waitForEvent('download')
      await hand.click(page.getByRole('button', { name: 'Export personal data' }))
      await exporting
      await press('Erase personal data')
      await press('Erase personal data')
      await sees(hand, /Erase personal data|redacted/)
    },
  },
  {
    what: 'add a webhook, and send again what it missed',
    role: 'owner',
    most: 7,
    async walk(hand) {
      const { page, click, type, press } = hand
      await go(hand, 'Webhooks')
      await click(opener(hand, 'Add a webhook'))
      await type(page.getByLabel('URL'), 'https://shop.example.com/hooks')
      await click(page.getByLabel('everything'))
      await press('Add webhook')
      await click(opener(hand, 'Send events again'))
      await press('Continue')
      await page.locator('#confirm, .notice').first().waitFor()
    },
  },
  {
    what: 'what was sent to a webhook',
    role: 'owner',
    most: 3,
    async walk(hand) {
      await go(hand, 'Webhooks')
      await hand.follow(hand.page.getByRole('link', { name: 'Order system' }))
      await hand.follow(hand.page.locator('td.main a').first())
      await sees(hand, 'Body')
    },
  },
  {
    what: 'write a template with a variable, and preview it',
    role: 'editor',
    most: 4,
    async walk(hand) {
      const { page, click, type, press } = hand
      await go(hand, 'Templates')
      await click(opener(hand, 'Create a template'))
      await type(page.getByLabel('Name', { exact: true }), 'Welcome')
      await type(page.getByLabel('HTML'), '<p>Hi {{name}}</p>')
      await press('Create template')
      await type(page.getByLabel('name', { exact: true }), 'Lea')
      await click(page.getByRole('button', { name: 'Preview unsaved text' }))
      await page.frameLocator('iframe').first().getByText('Hi Lea').first().waitFor()
    },
  },
  {
    what: 'save the emails with a tag as CSV',
    role: 'viewer',
    most: 6,
    async walk(hand) {
      const { page, click, type, press } = hand
      await go(hand, 'Emails')
      await click(page.getByText('More filters'))
      await type(page.getByLabel('Tag'), 'invoice')
      await type(page.getByLabel(/^From day/), '2026-01-01')
      await press('Find')
      const saving = page.waitForEvent('download')
      await click(page.getByRole('link', { name: 'CSV' }))
      await saving
    },
  },
  {
    what: 'the rejected calls of a key',
    role: 'viewer',
    most: 1,
    async walk(hand) {
      await go(hand, 'Rejected API calls')
      await sees(hand, /rejected calls/)
    },
  },
  {
    what: 'switch to another team',
    role: 'owner',
    most: 2,
    async walk({ page, click, follow }) {
      const menu = page.locator('details.menu').first()
      await click(menu.locator('summary'))
      await follow(menu.getByRole('link', { name: 'A team' }))
      await page.getByLabel('Team: A team').waitFor()
    },
  },
]
