/**
 * Live pages in a real browser. After a change of state, an open page shows the same as after a reload. A
 * page that can't be refreshed shows a message with the time of its last update.
 */
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { sql } from 'slonik'
import { suspendTeam } from '../../../db/accounts/teams/suspend.ts'
import { broadcastingOf } from '../../support/broadcasting.ts'
import { launchBrowser, signInWith } from '../../support/browser.ts'
import { signedIn } from '../../support/dashboard.ts'
import { pauseSender } from '../../support/senders.ts'
import { makeTeam, sendEmail, world } from '../../support/service.ts'
import t, { type Test } from '../../support/tap.ts'
import { happen } from '../../support/webhooks.ts'
import { until } from '../../support/worker.ts'

const browser = await launchBrowser(t, 'live pages of the dashboard')
if (browser) await livePages(browser)

/** Returns the titles, tags, alerts and buttons of each part of a page, without ages. */
const FACE = `[...document.querySelectorAll('main section, .acts > *, #state, .notice')].map((part) => {
  const seen = [...part.querySelectorAll('h1, h2, .tag, .alerts strong, .calm, button, .button, td, dt')]
  const words = seen.filter((one) => !one.closest('.codebox') && one.checkVisibility()).map((one) => {
    const own = one.cloneNode(true)
    for (const age of own.querySelectorAll('time, small')) age.remove()
    return own.textContent.trim().replace(/\\d+ (min|s|seconds?)\\b/g, '')
  })
  return [part.id, ...words].join(' | ')
})`
const faceOf = (page: Page) => page.evaluate<string[]>(FACE)

/** Refreshes a page immediately, like after a lost connection. */
const look = async (page: Page): Promise<void> => {
  const answered = page.waitForResponse(page.url())
  await page.evaluate("dispatchEvent(new Event('online'))")
  await (await answered).finished()
}

/**
 * Changes something while a page is open.
 * @returns the text of the page before and after. Fails unless the page equals a reload.
 */
async function changing(
  t: Test,
  { page, context }: { page: Page; context: BrowserContext },
  url: string,
  change: () => Promise<unknown>,
): Promise<{ before: string; after: string }> {
  await page.goto(url)
  const before = await faceOf(page)
  await page.evaluate("document.body.dataset.same = 'yes'")
  await change()
  const reloaded = await context.newPage()
  await reloaded.goto(url)
  const wanted = await faceOf(reloaded)
  await reloaded.close()
  t.notSame(wanted, before, 'the change can be seen')
  await look(page)
  await until('the page follows', async () => `${await faceOf(page)}` === `${wanted}`, 30).catch(() => {})
  t.strictSame(await faceOf(page), wanted)
  t.equal(await page.evaluate('document.body.dataset.same'), 'yes', 'without a reload')
  return { before: before.join('\n'), after: wanted.join('\n') }
}

async function livePages(browser: Browser): Promise<void> {
  let ahead = 0
  const { service, call, cli, database, team, send } = await world(t, {
    clock: () => new Date(Date.now() + ahead),
    publicUrl: 'http://localhost',
  })
  const home = `${service.base}/dashboard`
  const here = `${home}/teams/${team.id}`
  const key = team.key
  const now = new Date()
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  const signIn = (t: Test, email = 'ana@example.com', rights: { operator?: boolean; team?: string } = {}) =>
    signInWith(browser, service, { t, team: team.id, email, ...rights })
  const become = (email_id: string, kind: 'sent' | 'delivered' | 'bounced') =>
    happen(service, { team_id: team.id, email_id, kind })

  t.test('a sent email no longer shows why it waits', async (t) => {
    const id = await send()
    const { before, after } = await changing(t, await signIn(t), `${here}/emails/${id}`, () =>
      become(id, 'sent'),
    )
    t.match(before, /^waiting \|/m)
    t.notMatch(after, /^waiting \|/m)
  })

  t.test('an email that bounces shows the suppression', async (t) => {
    const to = 'gone@example.org'
    await call('POST', '/v1/contacts', { key, body: { email: to } })
    const id = await send({ to: [to] })
    const { after } = await changing(t, await signIn(t), `${here}/emails/${id}`, async () => {
      await become(id, 'sent')
      await become(id, 'bounced')
      await owner.post(`/teams/${team.id}/suppressions`, { email: to, reason: 'It bounced' })
    })
    t.match(after, /^alerts-suppressed \| gone@example\.org is suppressed/m)
    t.match(after, 'bounced')
  })

  t.test('the open page of a deleted email shows as unavailable', async (t) => {
    const id = await send({ scheduled_at: new Date(Date.now() + 3_600_000).toISOString() })
    const { page } = await signIn(t)
    await page.goto(`${here}/emails/${id}`)
    await call('POST', `/v1/emails/${id}/cancel`, { key })
    await look(page)
    await page.getByRole('alert').getByText('This page is no longer available.').waitFor()
  })

  t.test('a paused broadcast has the button that resumes it', async (t) => {
    const { contacts, create, post } = await broadcastingOf(service, team)
    await contacts(['one', 'two'])
    const id = await create()
    t.match((await post(id, 'send')).body, { state: 'sending' })
    const { before, after } = await changing(t, await signIn(t), `${here}/broadcasts/${id}`, () =>
      post(id, 'pause'),
    )
    t.match(before, 'Pause broadcast')
    t.match(after, 'Resume broadcast')
  })

  t.test('the open page of a disabled webhook can enable it', async (t) => {
    const hook = await cli.json(['webhook', 'add', team.id, '--url', 'https://example.com/hook'])
    const url = `${here}/webhooks/${hook.id}`
    const { before, after } = await changing(t, await signIn(t), url, () =>
      database.query(sql.unsafe`
        update webhook_endpoints set state = 'disabled', state_reason = 'it returned 410', disabled_at = now()
        where id = ${hook.id}`),
    )
    t.match(before, 'Send a test')
    t.match(after, /^troubles \|/m)
    t.match(after, 'Enable webhook')
  })

  t.test('a paused sender appears above the queues', async (t) => {
    const shown = await signIn(t)
    const sender = { key: 'smtp:mx.example.com', ceiling: 10 }
    await database.query(sql.unsafe`
      insert into pgboss.job (name, data) values ('deliver-email', '{"team_id": "1"}')`)
    const pause = () => database.transaction((tx) => pauseSender(tx, sender, 600, '451 Later'))
    const { after } = await changing(t, shown, `${home}/operator/queues`, pause)
    t.match(after, 'The queue Emails is waiting for smtp:mx.example.com')
  })

  t.test('a team that is suspended loses its buttons', async (t) => {
    const other = await makeTeam(service)
    const id = await sendEmail({ call }, other)
    const shown = await signIn(t, 'ben@example.com', { operator: false, team: other.id })
    const { before, after } = await changing(t, shown, `${home}/teams/${other.id}/emails/${id}`, () =>
      database.transaction((tx) => suspendTeam({ tx, now, actor: 'cli' }, other.id)),
    )
    t.match(before, /^more/m)
    t.match(after, /^suspended/m)
    t.notMatch(after, /^more/m)
  })

  t.test('keeps typed text while the rest is refreshed', async (t) => {
    const id = await send()
    const { page } = await signIn(t)
    await page.goto(`${here}/emails/${id}`)
    await page.locator('summary', { hasText: 'corrected address' }).click()
    const field = page.getByLabel('Corrected address')
    t.ok(await field.evaluate((one) => one.matches(':focus')), 'the first field has the focus')
    await field.fill('right@example.org')
    await become(id, 'delivered')
    await look(page)
    await page.locator('#state .tag', { hasText: 'delivered' }).waitFor()
    t.equal(await field.inputValue(), 'right@example.org')
    t.ok(await field.isVisible())
    await field.press('Escape')
    t.notOk(await field.isVisible(), 'Escape closes the form')
    t.match(await page.evaluate('document.activeElement.textContent'), 'corrected address')
  })

  t.test('updates the ages in a list', async (t) => {
    await send({ subject: 'Ageing' })
    const { page } = await signIn(t)
    await page.goto(`${here}/emails`)
    const age = page.locator('tr', { hasText: 'Ageing' }).locator('time')
    t.match(await age.innerText(), 'just now')
    ahead = 75_000
    await look(page)
    await page.locator('tr', { hasText: 'Ageing' }).getByText('1 minute ago').waitFor()
    ahead = 0
  })

  t.test("a refresh doesn't use up a notice", async (t) => {
    const { page, context } = await signIn(t)
    await page.goto(`${here}/topics`)
    const asked = await page.evaluate(`(async () => {
      const csrf = document.querySelector('[name=csrf]').value
      const body = new URLSearchParams({ csrf, name: 'Noticed' })
      await fetch('${here}/topics', { method: 'POST', body, redirect: 'manual' })
      return (await fetch('${here}')).text()
    })()`)
    t.notMatch(asked, 'The topic Noticed')
    const next = await context.newPage()
    await next.goto(`${here}/topics`)
    t.match(await next.locator('.notice').innerText(), 'The topic Noticed')
  })

  t.test("shows a lost connection with the last update's time", async (t) => {
    const { page, context } = await signIn(t)
    await page.goto(`${home}/operator`)
    const stale = page.getByRole('alert').filter({ hasText: 'The service isn’t responding.' })
    await context.setOffline(true)
    await stale.waitFor()
    const updated = (await page.locator('#updated').innerText()).replace('Updated ', '')
    t.match(await stale.innerText(), updated)
    t.match(updated, /^\d\d:\d\d:\d\d [A-Z]/, 'with the time zone')
    await context.setOffline(false)
    await stale.waitFor({ state: 'detached' })
  })

  t.test('a failing or silent server is shown', async (t) => {
    const { page } = await signIn(t)
    await page.goto(`${home}/operator`)
    const failing = page.locator('.stale', { hasText: 'The service returned an error.' })
    await page.route(page.url(), (route) => route.fulfill({ status: 502, body: 'Bad Gateway' }))
    await failing.waitFor()
    await page.unroute(page.url())
    await page.route(page.url(), () => {})
    await page.locator('.stale', { hasText: 'The service isn’t responding.' }).waitFor()
  })

  t.test('the end of a session is shown', async (t) => {
    const { page, context } = await signIn(t)
    await page.goto(here)
    const other = await context.newPage()
    await other.goto(`${home}/account`)
    await other.getByLabel(/You are/).click()
    await other.getByRole('banner').getByRole('button', { name: 'Sign out' }).click()
    await other.waitForURL(/login/)
    await look(page)
    await page.locator('.stale', { hasText: 'Your session has ended.' }).waitFor()
  })

  t.test("shows that an audience can't be counted yet, then counts", async (t) => {
    const own = await makeTeam(service)
    const { contacts, create } = await broadcastingOf(service, own)
    await contacts(['one', 'two'])
    const id = await create()
    const { page, context } = await signIn(t, 'cleo@example.com', { team: own.id })
    await page.goto(`${home}/teams/${own.id}/broadcasts/${id}/edit?step=audience`)
    const size = page.locator('#audience strong').first()
    t.equal(await size.innerText(), '2')
    await context.setOffline(true)
    await page.getByRole('checkbox').first().uncheck()
    const stale = page.locator('#audience .stale')
    await stale.waitFor()
    t.match(await stale.innerText(), /isn’t responding\. This count is from .*\d:\d\d/)
    await context.setOffline(false)
    await stale.waitFor({ state: 'detached' })
    t.match(await size.innerText(), '–')
    await context.clearCookies()
    await page.getByRole('checkbox').first().check()
    await stale.waitFor()
    t.match(await stale.innerText(), 'Your session has ended.')
  })
}
