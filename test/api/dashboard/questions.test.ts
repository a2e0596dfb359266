/** Questions before a form is processed. They have a URL that only works for the session of the form. */
import { randomBytes, randomInt } from 'node:crypto'
import { launchBrowser, signInWith } from '../../support/browser.ts'
import { shows, signedIn } from '../../support/dashboard.ts'
import { formTo } from '../../support/forms.ts'
import { world } from '../../support/service.ts'
import t from '../../support/tap.ts'

const { service, team } = await world(t)
const owner = await signedIn(service, { team: team.id, role: 'owner' })
const operator = await signedIn(service, { operator: true })
const at = (path: string): string => `/teams/${team.id}/${path}`

const makeTopic = async (name: string): Promise<string> => {
  await owner.post(at('topics'), { name })
  const { html } = await owner.get(at('topics'))
  return new RegExp(`${at('topics')}/[0-9a-f-]{36}(?="[^>]*>${name})`).exec(html)?.[0] ?? ''
}

t.test('a question has its own URL and a link back', async (t) => {
  const topic = await makeTopic('Asked')
  const sent = await owner.post(`${topic}/delete`, { confirmed: '' })
  t.match(sent, { status: 303, location: `${topic}/delete/confirm` })
  for (let times = 0; times < 2; times += 1) {
    const asked = await owner.get(sent.location ?? '')
    t.equal(asked.status, 200)
    shows(t, asked, /Delete the topic Asked\? .*0 contacts .*Delete topic Go back/)
    t.match(asked.html, `href="/dashboard${topic}">Go back</a>`)
  }
  t.equal((await owner.get(topic)).status, 200, 'nothing was done')
  const form = formTo((await owner.get(sent.location ?? '')).html, `${topic}/delete`)
  t.equal((await owner.post(`${topic}/delete`, form)).location, at('topics'))
  const gone = await owner.get(sent.location ?? '')
  t.equal(gone.status, 200)
  shows(t, gone, /Nothing left to confirm .*Go back/)
  t.match(gone.html, `href="/dashboard${at('topics')}">Go back</a>`)
})

t.test("a question's URL only works for its session and path", async (t) => {
  await owner.post(at('people'), { email: 'role@example.com', role: 'viewer' })
  const [member = ''] =
    new RegExp(`${at('people')}/[0-9a-f-]{36}(?=">role@)`).exec((await owner.get(at('people'))).html) ?? []
  const sent = await owner.post(`${member}/role`, { role: 'editor', confirmed: '' })
  const address = sent.location ?? ''
  t.notMatch(decodeURIComponent(address), 'editor', 'it can’t be read')
  shows(t, await owner.get(address), 'Change the role of role@example.com to editor?')
  t.match(formTo((await owner.get(address)).html, `${member}/role`), { role: ['editor'], confirmed: ['yes'] })
  const other = await signedIn(service, { team: team.id, role: 'owner' })
  const [, form = ''] = /form=(.*)/.exec(address) ?? []
  const topic = await makeTopic('Foreign')
  for (const [person, path] of [
    [other, address],
    [owner, address.replace('form=', 'form=x')],
    [owner, `${topic}/delete/confirm?form=${form}`],
  ] as const)
    t.equal((await person.get(path)).status, 303, 'leads back to the page of the form')
})

/** A catalog with many plans, each with different values. */
function largeCatalog(text: string, count: number): string {
  const { plans } = JSON.parse(text)
  const more = Array.from({ length: count }, (_, at) => {
    const words = randomBytes(9).toString('base64')
    const limits = { email_limit: randomInt(1_000_000), contact_limit: randomInt(1_000_000) }
    return { ...plans[0], key: `plan-${at}`, name: { en: `Plan ${words}`, fr: `Tarif ${words}` }, ...limits }
  })
  return JSON.stringify({ plans: [...plans, ...more] }, null, 2)
}

t.test('the question of a catalog of 30 KB has its own URL', async (t) => {
  const path = '/operator/plans'
  const form = formTo((await operator.get(path)).html, path)
  const catalog = largeCatalog(form.catalog?.[0] ?? '', 25)
  t.ok(catalog.length > 25_000 && catalog.length < 32_000, `${catalog.length} characters`)
  const sent = await operator.post(path, { ...form, catalog, confirmed: '' })
  t.match(sent, { status: 303, location: `${path}/confirm?form=` })
  const { length = 0 } = sent.location ?? ''
  t.ok(length < 7_100, `${length} characters fit into the first line of a request`)
  const asked = await operator.get(sent.location ?? '')
  shows(t, asked, 'Replace all plans?')
  t.strictSame(formTo(asked.html, path).catalog, [catalog], 'nothing is lost')
})

/** Returns a catalog of one plan with an incompressible text. */
function longCatalog(text: string, bytes: number): string {
  const { plans } = JSON.parse(text)
  const words = { en: randomBytes(bytes).toString('base64'), fr: 'Plan' }
  return JSON.stringify({ plans: [{ ...plans[0], blurb: words }] })
}

t.test('confirms a form too long for a URL in the response to its POST', async (t) => {
  const path = '/operator/plans'
  const form = formTo((await operator.get(path)).html, path)
  const catalog = longCatalog(form.catalog?.[0] ?? '', 20_000)
  const asked = await operator.post(path, { ...form, catalog, confirmed: '' })
  t.equal(asked.status, 200)
  shows(t, asked, 'Replace all plans?')
  t.strictSame(formTo(asked.html, path).catalog, [catalog])
})

t.test('a long filter counts towards the length of the URL', async (t) => {
  const path = '/operator/plans'
  const form = formTo((await operator.get(path)).html, path)
  const catalog = longCatalog(form.catalog?.[0] ?? '', 4_100)
  const short = await operator.post(path, { ...form, catalog, confirmed: '' })
  t.equal(short.status, 303)
  const filter = `?reason=${'a'.repeat(1_500)}`
  const long = await operator.post(`${path}${filter}`, { ...form, catalog, confirmed: '' })
  t.equal(long.status, 200, `${long.location?.length} characters`)
  shows(t, long, 'Replace all plans?')
  t.ok(long.html.includes(`action="/dashboard${path}${filter.replace('=', '&#x3D;')}"`), 'the filter remains')
})

const browser = await launchBrowser(t, 'questions in a browser')
if (browser)
  t.test('Back after a confirmed action opens a page without the question', async (t) => {
    const { page } = await signInWith(browser, service, { t, team: team.id })
    const home = `${service.base}/dashboard`
    const failed: string[] = []
    // Leaving a page cuts off its refresh, which is no failure.
    page.on('requestfailed', (request) => request.isNavigationRequest() && failed.push(request.url()))
    await page.goto(`${home}/operator/queues`)
    await page.getByRole('button', { name: 'Pause queue Emails', exact: true }).click()
    await page.getByRole('heading', { name: 'Pause Emails?' }).waitFor()
    await page.reload()
    await page.getByRole('button', { name: 'Pause queue', exact: true }).click()
    await page.getByText('The queue Emails is paused').waitFor()
    await page.goBack()
    await page.getByRole('heading', { name: 'Nothing left to confirm' }).waitFor()
    await page.getByText('The queue Emails is already paused').waitFor()
    await page.goBack()
    await page.getByRole('heading', { name: 'Queues' }).waitFor()
    await page.goto(`${home}/operator/plans`)
    await page.locator('#act-change-plans > summary').click()
    const field = page.getByLabel('Plans as JSON')
    await field.waitFor()
    const catalog = largeCatalog(await field.inputValue(), 12)
    await page.evaluate(`document.querySelector('[name=catalog]').value = ${JSON.stringify(catalog)}`)
    await page.getByRole('button', { name: 'Replace all plans' }).click()
    await page.getByRole('heading', { name: 'Replace all plans?' }).waitFor()
    await page.getByRole('button', { name: 'Replace all plans' }).click()
    await page.getByText('The plans were replaced').waitFor()
    await page.goBack()
    await page.getByRole('heading', { name: 'Nothing left to confirm' }).waitFor()
    t.strictSame(failed, [])
  })
