/** The dashboard in a real browser, with untrusted HTML. Skipped without Chromium. */
import type { Browser, Page } from 'playwright-core'
import { broadcastingOf } from '../../support/broadcasting.ts'
import { launchBrowser, signInWith } from '../../support/browser.ts'
import { anEmail, world } from '../../support/service.ts'
import { startSmtpSink } from '../../support/smtp-sink.ts'
import t, { type Test } from '../../support/tap.ts'
import { startWorker, until } from '../../support/worker.ts'

const browser = await launchBrowser(t, 'journeys through the dashboard')
if (browser) await journeys(browser)

async function journeys(browser: Browser): Promise<void> {
  const { service, call, base, team } = await world(t)
  const home = `${base}/dashboard`
  const here = `${home}/teams/${team.id}`

  const hostile = anEmail({
    subject: '<img src=x onerror="window.hacked=1">',
    html: '<script>parent.hacked=1;window.hacked=1</script><form action="/x"><button>x</button></form><p>Evil</p>',
    tags: ['"><script>window.hacked=1</script>'],
  })
  const { body: evil } = await call('POST', '/v1/emails', { key: team.key, body: hostile })

  const signIn = (t: Test, options: Parameters<Browser['newContext']>[0] = {}, email = 'ana@example.com') =>
    signInWith(browser, service, { t, team: team.id, email }, options)

  const submit = async (page: Page, name: string): Promise<void> => {
    await page.getByRole('button', { name, exact: true }).click()
    await page.waitForLoadState()
  }

  t.test('drafts, previews, tests, publishes and restores a template', async (t) => {
    const { page } = await signIn(t)
    const preview = page.frameLocator('iframe').locator('p')
    const state = page.locator('#state')
    await page.goto(`${here}/templates`)
    await page.locator('summary', { hasText: 'Create a template' }).click()
    await page.getByLabel('Name').fill('Welcome')
    await page.getByLabel('HTML').fill('<p>Hi {{name}}</p>')
    await submit(page, 'Create template')
    const entries = await page.evaluate<number>('history.length')
    await page.getByLabel('HTML').fill('<p>Typed {{name}}</p>')
    await page.frameLocator('iframe').getByText('Typed [name]').first().waitFor()
    await page.getByLabel('name', { exact: true }).fill('Ana')
    await page.frameLocator('iframe').getByText('Typed Ana').first().waitFor()
    t.equal(await page.evaluate<number>('history.length'), entries, 'Back leaves the page')
    await page.getByLabel('HTML').fill('<p>Dear {{name}} of {{city}}</p>')
    await page.getByRole('button', { name: 'Preview unsaved text' }).click()
    await page.frameLocator('iframe').getByText('Dear Ana of [city]').first().waitFor()
    const unsaved = await page.getByLabel('HTML').inputValue()
    t.equal(unsaved, '<p>Dear {{name}} of {{city}}</p>', 'the unsaved text stays in the editor')
    t.match(await state.innerText(), 'published')
    const left = page.waitForEvent('dialog')
    page
      .getByRole('link', { name: 'Topics' })
      .click()
      .catch(() => {})
    const dialog = await left
    t.equal(dialog.type(), 'beforeunload', 'leaving asks first')
    await dialog.dismiss()
    await submit(page, 'Save the draft')
    t.match(await state.innerText(), 'unpublished changes')
    t.equal(await preview.innerText(), 'Dear [name] of [city]')
    await page.getByRole('link', { name: 'Published', exact: true }).click()
    await page.frameLocator('iframe').getByText('Hi [name]').first().waitFor()
    await page.getByRole('link', { name: 'Draft', exact: true }).click()
    await page.frameLocator('iframe').getByText('Dear [name]').first().waitFor()
    await page.getByLabel('More actions').click()
    await page.locator('summary', { hasText: 'Send a test' }).click()
    await submit(page, 'Send it to me')
    t.match(await page.locator('.notice').innerText(), 'A test is on its way')
    await submit(page, 'Review changes')
    t.match(await page.locator('.difference').first().innerText(), /- <p>Hi[\s\S]*\+ <p>Dear/)
    const spaces = (selector: string) =>
      page.evaluate<string>(`getComputedStyle(document.querySelector('${selector}')).whiteSpace`)
    t.equal(await spaces('pre.difference'), 'pre-wrap', 'long lines of a difference go on in the next')
    t.equal(await spaces('section.difference'), 'normal')
    await submit(page, 'Publish draft')
    const question = await page.locator('main').innerText()
    t.match(question, /Publish the draft of Welcome\?[\s\S]*Emails without city/)
    await submit(page, 'Publish draft')
    t.match(await page.locator('.notice').innerText(), 'The draft is published. Variables: name, city.')
    t.match(await state.innerText(), 'published')
    t.match(await page.locator('tr', { hasText: 'in use' }).innerText(), 'ana@example.com')
    await page.getByRole('button', { name: 'Restore version' }).first().click()
    await submit(page, 'Restore version')
    await page.frameLocator('iframe').getByText('Hi [name]').first().waitFor()
  })

  t.test('a link to another step of a draft confirms leaving, the buttons save', async (t) => {
    const { page } = await signIn(t)
    const { create } = await broadcastingOf(service, team)
    await page.goto(`${here}/broadcasts/${await create()}/edit?step=message`)
    await page.getByLabel('Subject').fill('Typed')
    const left = page.waitForEvent('dialog', { timeout: 10_000 })
    const link = page.locator('#steps').getByRole('link', { name: 'Audience' })
    link.click().catch(() => {})
    const dialog = await left.catch(() => null)
    t.equal(dialog?.type(), 'beforeunload')
    await dialog?.dismiss()
    await submit(page, 'Continue')
    await page.waitForURL(/step=audience/)
    await link.waitFor({ state: 'detached' })
    await page.locator('#steps').getByRole('link', { name: 'Message' }).click()
    await page.waitForURL(/step=message/)
    t.equal(await page.getByLabel('Subject').inputValue(), 'Typed')
  })

  t.test('keeps a rejected text and confirms leaving the page', async (t) => {
    const { page } = await signIn(t)
    await page.goto(`${here}/templates`)
    await page.locator('summary', { hasText: 'Create a template' }).click()
    await page.getByLabel('Name').fill('Refused')
    await page.getByLabel('HTML').fill('<p>{{#broken}}</p>')
    await submit(page, 'Create template')
    t.equal(await page.getByLabel('HTML').inputValue(), '<p>{{#broken}}</p>')
    const left = page.waitForEvent('dialog', { timeout: 10_000 })
    const link = page.getByRole('link', { name: 'Topics' })
    link.click().catch(() => {})
    const dialog = await left.catch(() => null)
    t.equal(dialog?.type(), 'beforeunload')
    await dialog?.dismiss()
    await page.getByLabel('HTML').fill('<p>whole</p>')
    await submit(page, 'Create template')
    t.match(await page.locator('#state').innerText(), 'published', 'saved, it is left without one')
  })

  t.test('a key is shown once, and its first use appears', async (t) => {
    const { page } = await signIn(t)
    await page.goto(`${here}/keys`)
    await page.getByText('Create a key').first().click()
    await page.getByLabel('Name', { exact: true }).fill('shop')
    await page.getByLabel('contacts:read').check()
    await submit(page, 'Create key')
    const key = await page.locator('#secret').innerText()
    await page.reload()
    t.equal(await page.locator('#secret').count(), 0)
    t.match(await page.locator('#facts').innerText(), 'never')
    t.equal((await call('GET', '/v1/contacts', { key })).status, 200)
    const used = page.locator('#facts').filter({ hasText: 'within the last hour' })
    await used.waitFor()
    t.ok(await used.count(), 'without a reload')
  })

  t.test('printed pages have no navigation, and tabs have an icon', async (t) => {
    const { page } = await signIn(t)
    await page.goto(`${here}/emails`)
    await page.emulateMedia({ media: 'print' })
    const seen = await page.evaluate<
      string[]
    >(`['.top', '#nav', '.acts', 'main button', 'h1', 'main table, main .empty']
      .filter((one) => document.querySelector(one)?.checkVisibility())`)
    t.strictSame(seen, ['h1', 'main table, main .empty'])
    const icon = await page.getAttribute('link[rel=icon]', 'href')
    const drawn = `new Promise((done) => { const image = new Image(); image.onload = () => done(image.naturalWidth > 0); image.onerror = () => done(false); image.src = ${JSON.stringify(icon)} })`
    t.ok(await page.evaluate(drawn))
  })

  t.test('a Copy button briefly shows and announces that it copied', async (t) => {
    const { page, context } = await signIn(t)
    await context.grantPermissions(['clipboard-read', 'clipboard-write'])
    await page.clock.install()
    await page.goto(`${here}/integration`)
    const copy = page.getByRole('button', { name: 'Copy Send an email', exact: true })
    const code = await page.locator('section', { has: copy }).locator('pre').textContent()
    await copy.click()
    await page.getByRole('status').getByText('Copied', { exact: true }).waitFor({ state: 'attached' })
    t.equal(await page.getByRole('button', { name: 'Copied', exact: true }).count(), 1)
    t.match(code, '/v1/emails')
    t.equal(await page.evaluate('navigator.clipboard.readText()'), code)
    await page.clock.fastForward(2_100)
    await copy.waitFor()
    t.equal(await page.getByText('Copied').count(), 0, 'nothing says it any more')
  })

  t.test('shows why the relay is down, and resumes sending', async (t) => {
    let words: string | undefined = `554 5.3.2 Closed for repairs${', with a long reason'.repeat(6)}`
    const sink = await startSmtpSink(t, { onConnect: () => words })
    const worker = await startWorker(t, service, { smtp_url: sink.url })
    const { page } = await signIn(t)
    const alert = page.locator('#needs', { hasText: 'Closed for repairs' })
    await alert.waitFor()
    t.match(await alert.innerText(), `Nothing goes out through smtp:127.0.0.1:${sink.port}`)
    const isCut =
      "[...document.querySelectorAll('#needs li > div')].some((one) => one.scrollWidth > one.clientWidth)"
    t.notOk(await page.evaluate(isCut), 'the reason wraps')
    await page.getByRole('link', { name: 'Queues', exact: true }).click()
    const why = page.locator('.alerts', { hasText: 'The queue Emails is waiting' })
    t.match(await why.innerText(), `The queue Emails is waiting for smtp:127.0.0.1:${sink.port}`)
    const queue = page.locator('tr', { hasText: /Emails/ })
    await queue.getByRole('button', { name: 'Pause queue' }).click()
    await submit(page, 'Pause queue')
    t.match(await queue.innerText(), 'Emails, paused')
    words = undefined
    await queue.getByRole('button', { name: 'Resume queue' }).click()
    t.notMatch(await queue.innerText(), 'paused')
    await page.getByRole('list', { name: 'Operator' }).getByRole('link', { name: 'Senders' }).click()
    const sender = page.locator('tr', { hasText: `smtp:127.0.0.1:${sink.port}` })
    if (await sender.getByRole('button', { name: 'Resume now' }).count())
      await sender.getByRole('button', { name: 'Resume now' }).click()
    await page.goto(`${here}/emails?status=queued`)
    await until('all is sent', async () => {
      await page.reload()
      return (await page.getByText('No email matches.').count()) > 0
    })
    t.ok(sink.messages().length > 0)
    await page.goto(here)
    t.match(await page.locator('#needs').innerText(), /^((?!Nothing goes out)[\s\S])*$/)
    await worker.stop()
  })

  t.test('a clicked button is disabled until the response', async (t) => {
    const { page } = await signIn(t)
    await page.clock.install()
    await page.goto(`${here}/topics`)
    await page.getByText('Create a topic').first().click()
    await page.getByLabel('Name', { exact: true }).fill('Slow')
    const shown: string[] = []
    let posts = 0
    // Playwright can't inspect a page during navigation, so the page itself reports its state and clicks
    // again.
    await page.exposeFunction('report', (state: string) => void shown.push(state))
    await page.evaluate(`new MutationObserver(([{ target }], observer) => {
      observer.disconnect()
      report(target.textContent + (target.disabled ? ' disabled' : '') + ' ' + target.ariaBusy)
      target.click()
    }).observe(document.body, { subtree: true, attributeFilter: ['aria-busy'] })`)
    await page.route(`${here}/topics`, async (route) => {
      posts++
      await until('the press is shown', () => shown.length > 0)
      // The page stays, like with a download.
      await route.fulfill({ status: 204 })
    })
    const button = page.getByRole('button', { name: 'Create topic', exact: true })
    const answered = page.waitForEvent('requestfailed')
    await button.click({ noWaitAfter: true })
    await answered
    t.strictSame(shown, ['Create topic disabled true'])
    t.ok(await button.isDisabled())
    await page.clock.fastForward(11_000)
    t.ok(await button.isEnabled())
    t.equal(await button.getAttribute('aria-busy'), null)
    t.equal(posts, 1)
  })

  t.test('forms work without JavaScript', async (t) => {
    const { page } = await signIn(t, { javaScriptEnabled: false }, 'plain@example.com')
    await page.goto(`${here}/topics`)
    await page.getByText('Create a topic').first().click()
    await page.getByLabel('Name', { exact: true }).fill('Letters')
    await submit(page, 'Create topic')
    t.match(await page.locator('.notice').innerText(), 'The topic Letters was created.')
  })

  t.test("untrusted HTML can't run scripts or load remote resources", async (t) => {
    const { page } = await signIn(t)
    const asked: string[] = []
    page.on('request', (request) => asked.push(request.url()))
    await page.goto(`${here}/emails/${evil.id}`)
    await page.frameLocator('iframe').getByText('Evil').first().waitFor()
    t.notOk(await page.evaluate('window.hacked'))
    t.notOk(
      await page
        .frames()[1]
        ?.evaluate('window.hacked')
        .catch(() => undefined),
    )
    const foreign = asked.filter((url) => !url.startsWith(base))
    t.strictSame(foreign, [])
    await page.goto(`${here}/emails`)
    t.notOk(await page.evaluate('window.hacked'))
  })
}
