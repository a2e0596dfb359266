/**
 * Checks every page of the dashboard in a real browser, with the data of an active team. The checks are in
 * test/support/looks.ts, which can also store screenshots.
 */
import type { Browser } from 'playwright-core'
import { record } from '../../../db/accounts/audit/record.ts'
import { keysOfTeam } from '../../../db/accounts/credentials/credentials.sql.ts'
import { addDomain } from '../../../db/accounts/domains/add.ts'
import { linkFor } from '../../../db/accounts/members/members.ts'
import { suspendTeam } from '../../../db/accounts/teams/suspend.ts'
import { chooseContactColumns } from '../../../db/audience/contacts/columns.ts'
import { broadcastingOf } from '../../support/broadcasting.ts'
import { fits, isAccessible, launchBrowser, signInWith } from '../../support/browser.ts'
import { aBusyMonth } from '../../support/busy-month.ts'
import { livedIn } from '../../support/lived-in.ts'
import {
  anImportUnderWay,
  anUploadedImport,
  broadcastsAtEveryState,
} from '../../support/lived-in-progress.ts'
import {
  ask,
  BEYOND,
  hasOwnNames,
  isFramed,
  isWanted,
  lookAt,
  lookOver,
  pathsWith,
  redActs,
  WIDE,
} from '../../support/looks.ts'
import { byCli, makeTeam, startService } from '../../support/service.ts'
import t from '../../support/tap.ts'

/** Functions for expressions about the layout. `select` measures the selected option. */
/**
 * True if the line below the name of each card has the status at the left and the time at the right, and each labelled
 * value is below it, in the same column in all rows.
 */
const STEADY = `(() => {
  const box = (one) => one.getBoundingClientRect()
  const lefts = {}
  return [...document.querySelectorAll('main tr:has(td.last)')].every((row) => {
    const shown = [...row.querySelectorAll('td:not(.none, .gap, .pick)')]
    const [name, state, time] = ['td.main', 'td.state:not(.none, .gap)', 'td.last'].map((one) => row.querySelector(one))
    const isRight = box(row).right - box(time).right < 20 && box(time).top >= box(name).bottom - 4
    const isNext = !state || (box(state).left === box(name).left && box(state).top < box(time).bottom && box(state).bottom > box(time).top)
    const above = [name, ...shown.filter((one) => one.matches('.self:not(.last, .state, :has(form))'))]
    const labelled = shown.filter((one) => one.dataset.label && one !== state)
    for (const { dataset, offsetLeft } of labelled) (lefts[dataset.label] ??= new Set()).add(offsetLeft)
    return isRight && isNext && row.clientHeight > 30
      && above.every((one) => box(one).bottom <= box(state ?? time).top + 4)
      && labelled.every((one) => box(one).top >= Math.max(box(time).bottom, box(state ?? time).bottom) - 4)
      && shown.every((one) => !one.querySelector('.tag') || one === state || one.dataset.label)
  }) && Object.values(lefts).every(({ size }) => size === 1)
})()`

/** The values that are cut. */
const CUT = `[...document.querySelectorAll('td > div')]
  .filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent)`

const MEASURES = `
  var box = (what) => document.querySelector('main ' + what).getBoundingClientRect()
  var style = (what) => getComputedStyle(document.querySelector(what))
  var select = (what) => {
    const copy = document.querySelector(what).cloneNode()
    copy.append(document.querySelector(what).selectedOptions[0].cloneNode(true))
    copy.style.width = 'max-content'
    document.body.append(copy)
    return copy.getBoundingClientRect().width
  };`

const browser = await launchBrowser(t, 'the looks of the dashboard')
if (browser) await looks(browser)

async function looks(browser: Browser): Promise<void> {
  const service = await startService(t, {
    dashboard: {
      returnDomain: 'bounces.example.com',
      lookupTxt: async () => ['v=spf1 include:example.net ~all'],
    },
  })
  const lived = await livedIn(service)
  const home = `${service.base}/dashboard`
  const { team } = lived
  const { create } = await broadcastingOf(service, team)
  const draft = await create({
    where: [
      { property: 'city', op: 'gt', value: '5' },
      { property: 'plan', op: 'exists' },
    ],
  })
  const by = { tx: service.database, now: new Date(), actor: 'ana@example.com' }
  await chooseContactColumns(by, team.id, ['name', 'city', 'phone'])
  const offers = await aBusyMonth(service, team)
  const broadcasts = await broadcastsAtEveryState(service, team, offers)
  const key = (await keysOfTeam(service.database, team.id))[0]?.id ?? ''
  const paths = pathsWith({
    '/emails/:id': lived.bounced,
    '/templates/:id': lived.template,
    '/whatsapp/:id': lived.message,
    '/whatsapp-templates/:id': lived.whatsappTemplate,
    '/broadcasts/:id': draft,
    '/imports/:id': await anUploadedImport(service, team),
    '/webhooks/:id': lived.webhook,
    '/events/:event_id': lived.event,
    '/reports/:report_id': lived.report,
    '/background-jobs/:id': lived.job,
    '/teams/:id': team.id,
    '/teams/:team': team.id,
    '/domains/:name': 'example.com',
    '/keys/:id': key,
    '/queues/:queue': 'deliver-email',
    '/contacts/:email': lived.recipient,
  })
  paths.push(`/teams/${team.id}/broadcasts/${draft}/edit?step=audience`)
  // Its zone is unknown, so hosts are full names.
  const domain = 'mail.brand-new-shop.example'
  await service.database.transaction((tx) =>
    addDomain({ ...by, tx, secrets: service.deps.secrets }, team.id, { name: domain, verified: false }),
  )
  paths.push(`/teams/${team.id}/domains/${domain}`)
  const importing = `/teams/${team.id}/contacts/imports/${await anImportUnderWay(service, team)}`
  paths.push(importing, '/nowhere')
  paths.push(...Object.values(broadcasts).map((id) => `/teams/${team.id}/broadcasts/${id}`))

  const NAME = 'Northwind Traders International'
  const frameOf = (path: string): string => (path.startsWith('/operator') ? 'Operator' : NAME)

  t.test('every page is accessible and fits, with unique button names', async (t) => {
    const { page } = await signInWith(browser, service, { t, team: team.id })
    let asked = 0
    const red = new Set<string>()
    for (const path of paths.filter(isWanted)) {
      await lookAt(t, page, home + path, path, frameOf(path))
      for (const act of await redActs(t, page, path)) red.add(act)
      await hasOwnNames(t, page, path)
      if (!(await ask(page))) continue
      asked += 1
      await lookOver(t, page, `${path} asks`, frameOf(path))
      await redActs(t, page, `${path} asks`)
      await hasOwnNames(t, page, `${path} asks`)
    }
    t.ok(red.size >= 8 || !isWanted(''), `red: ${[...red]}`)
    t.ok(asked >= 12 || !isWanted(''), `${asked} questions`)
  })

  const inTeam = `/teams/${team.id}`
  const others = [inTeam, `${inTeam}/emails`, `${inTeam}/audit`, '/account', '/find?q=ana', '/nowhere']
  const email = `${inTeam}/emails/${lived.bounced}`
  const broadcast = `${inTeam}/broadcasts/${broadcasts.sending}`
  const draws = `${inTeam}/templates/${lived.template}`
  // Only one page per kind of section and role in dark mode, because axe is slow.
  const read = [inTeam, `${inTeam}/emails`, email, broadcast, `${inTeam}/integration`]
  const written = [`${inTeam}/contacts`, importing, draws, `${draws}/changes`]
  for (const { who, these, dark, ...rights } of [
    { who: 'an owner', role: 'owner', these: [...others, `${inTeam}/keys`], dark: [] },
    { who: 'an editor', role: 'editor', these: others, dark: [...read, ...written] },
    { who: 'a viewer', role: 'viewer', these: others, dark: read },
    { who: 'an editor of two teams', role: 'editor', also: await makeTeam(service), these: others, dark: [] },
  ] as const)
    t.test(`${who} sees the frame of pages and questions, which are accessible in dark mode`, async (t) => {
      const address = `${who.replaceAll(' ', '-')}@example.com`
      const also = 'also' in rights ? { also: rights.also.id } : {}
      const reader = { t, team: team.id, email: address, role: rights.role, operator: false, ...also }
      const { page } = await signInWith(browser, service, reader)
      await page.goto(home + inTeam)
      for (const path of new Set([...these, ...dark])) {
        const name = `${path} for ${who}`
        if (!isWanted(name)) continue
        await page.goto(home + path)
        await isFramed(t, page, name, NAME)
        if ((dark as readonly string[]).includes(path)) {
          await page.emulateMedia({ colorScheme: 'dark' })
          await isAccessible(t, page, `${name} in the dark`)
          await page.emulateMedia({ colorScheme: 'light' })
        }
        if (await ask(page)) await isFramed(t, page, `${name}, asking`, NAME)
      }
    })

  t.test("a long word doesn't make a page or table wider", async (t) => {
    const name = 'Donaudampfschifffahrtsgesellschaft'.repeat(5)
    const id = await create({ name })
    await record(by, { team_id: team.id, action: 'broadcast.update', subject: name, detail: id })
    const { page } = await signInWith(browser, service, { t, team: team.id })
    for (const path of [`broadcasts/${id}`, `broadcasts/${id}/edit?step=audience`, 'audit', 'broadcasts'])
      for (const width of [1_280, 320]) {
        await page.setViewportSize({ width, height: 800 })
        await page.goto(`${home}${inTeam}/${path}`)
        await fits(t, page, `${path} at ${width} px`)
        t.strictSame(await page.evaluate(BEYOND), [], `${path} at ${width} px: tables`)
      }
    await page.setViewportSize(WIDE)
    await page.goto(`${home}/operator/teams`)
    const heights = await page.locator('tbody tr').evaluateAll((rows) => rows.map((row) => row.clientHeight))
    t.ok(Math.max(...heights) <= 45, `a row is one line: ${heights}`)
    for (const path of ['/operator/audit', `${inTeam}/audit`])
      for (const width of [1_280, 900]) {
        await page.setViewportSize({ width, height: 800 })
        await page.goto(home + path)
        t.strictSame(await page.evaluate(CUT), [], `${path} at ${width} px: nothing is cut`)
        await fits(t, page, `${path} at ${width} px`)
        const lines = (
          await page.locator('tbody tr').evaluateAll((rows) => rows.map((row) => row.clientHeight))
        ).sort((one, other) => one - other)
        const usual = lines[Math.floor(lines.length / 2)] ?? Number.NaN
        t.ok(usual <= (path === '/operator/audit' ? 106 : 86), `${path} at ${width} px: short rows: ${lines}`)
      }
  })

  t.test('each part has its place on phones, tablets and wide screens', async (t) => {
    const { page } = await signInWith(browser, service, { t, team: team.id, role: 'editor' })
    const contact = `contacts/${lived.recipient}`
    const webhook = `webhooks/${lived.webhook}`
    const unreached = `broadcasts/${broadcasts.sent}/again`
    const places = `
      900 contacts: a filter in one row
        box('.filter button').top === box('.filter input').top
      1920 : buttons of alerts at the right
        box('.alerts li').right - box('.alerts li > a').right < 40
      390 ${contact}: the menu beside the title
        box('#more').top < box('h1').top && box('#more').left > box('h1').right
      390 ${contact}: fields with visible borders
        style('.rows textarea').borderColor === style('.seek input').borderColor
      390 ${webhook}: a Copy button that is not indented
        box('dd button').left === box('dd code').left
      390 broadcasts/${draft}/edit?step=audience: the whole comparison
        select('[name^=op]') <= box('[name^=op]').width
      390 broadcasts/${draft}/edit?step=audience: a label above each field of a condition
        [...document.querySelectorAll('.beside > label')].every((one) => getComputedStyle(one).position === 'static')
      1280 broadcasts/${draft}/edit?step=audience: labels only above the first condition
        [...document.querySelectorAll('.beside:not(.more *) > label')].filter((one) => getComputedStyle(one).position === 'static').length === 3
      390 broadcasts/${draft}/edit?step=when: steps centered below their numbers
        style('.stepper li').textAlign === 'center'
      1280 broadcasts/${broadcasts.sent}: one gap in the right column
        [...document.querySelectorAll('aside > section + section')].every((one) => Math.round(one.getBoundingClientRect().top - one.previousElementSibling.getBoundingClientRect().bottom) === 24)
      390 ${unreached}: space around wrapped contacts
        parseInt(style('tbody tr').paddingTop) >= 4
      390 suppressions: a server response in lines
        style('.wide:not(.main) .detail').whiteSpace === 'normal'
      390 emails?status=queued: boxes to select rows
        box('td.pick label').width >= 24
      1024 contacts?q=bartholomew: a contact much wider than each of its other values
        [...document.querySelectorAll('td:not(.main)')].every((one) => box('td.wide.main').width > 1.8 * one.offsetWidth)
      1024 ${webhook}: facts beside their labels
        box('dd').top <= box('dt').top
      1280 domains/example.com: a key in full lines
        style('ul.records code').wordBreak === 'break-all'
      1280 emails/${lived.bounced}: a timeline that ends at its last dot
        /, 0\\)$/.test(style('.timeline li:last-child').borderLeftColor)
      1280 ${webhook}: facts below their labels in a narrow column
        box('dd').top >= box('dt').bottom
      1920 : chart labels smaller than the text
        box('svg text').height < 16
      1920 : alerts that can be read
        box('.alerts div').width <= 960
      1920 integration: example requests side by side
        [...document.querySelectorAll('section.code')].some((one) => one.offsetTop === one.nextElementSibling?.offsetTop)
      1600 emails?status=queued: a wide search field
        box('.filter .search input').width >= 320
      900 ${unreached}: buttons beside the title below the link to a long name
        box('.acts').top < box('h1').bottom
      900 : the whole placeholder of the search
        document.querySelector('#q').clientWidth >= 310
      900 webhooks/events: a list of five columns as a table
        style('thead').display !== 'none'
      900 broadcasts: a list of seven columns as cards
        style('thead').display === 'none'
      390 broadcasts: numbers in two columns
        box('td.number:nth-of-type(3)').left === box('td.number:nth-of-type(5)').left
      390 emails?status=queued: boxes beside their rows
        box('td.pick label').right <= box('td.main').left && box('td.pick label').top < box('td.main').bottom
      390 emails: a last choice of its own width
        [...document.querySelectorAll('.pressed li')].at(-1).clientWidth < 150
      320 broadcasts/${draft}/edit?step=audience: the steps on one line
        new Set([...document.querySelectorAll('.stepper li')].map((one) => one.offsetTop)).size === 1
      1280 : alerts of two lines
        [...document.querySelectorAll('#needs li')].every((one) => one.clientHeight < 65)
      390 : running broadcasts above the stats
        box('#ahead').bottom <= box('#counts').top
      900 : running broadcasts above the stats
        box('#ahead').bottom <= box('#counts').top
      1280 : running broadcasts above the stats
        box('#ahead').bottom <= box('#counts').top
      1920 templates/${lived.template}: facts in two columns
        box('.facts dl div:last-child').left > box('.facts dl div').right
      390 domains/${domain}: the note about hosts below its heading
        box('#records h2').top > box('.acts').bottom && box('#records .note').top >= box('#records h2').bottom
      1280 audit: a cut address with a tooltip
        [...document.querySelectorAll('td > div')].filter((one) => one.scrollWidth > one.clientWidth).every((one) => one.title.startsWith(one.textContent.slice(0, 9)))
      390 audit: whole values
        [...document.querySelectorAll('td > div')].every((one) => one.scrollWidth <= one.clientWidth)
      390 broadcasts/${broadcasts.sent}: an outcome on one line
        [...document.querySelectorAll('#outcomes tbody tr')].every((one) => Math.abs(one.children[0].getBoundingClientRect().top - one.querySelector('.number').getBoundingClientRect().top) < 12)
      390 broadcasts: the status and the time below the name, and each value in its place
        ${STEADY}
      390 contacts: the status and the time below the name, and each value in its place
        ${STEADY}
      390 emails?status=queued: the status and the time below the name, and each value in its place
        ${STEADY}
      390 suppressions: the status and the time below the name, and each value in its place
        ${STEADY}
      390 audit: the status and the time below the name, and each value in its place
        ${STEADY}
      390 whatsapp: the status and the time below the name, and each value in its place
        ${STEADY}
      390 webhooks/events: the status and the time below the name, and each value in its place
        ${STEADY}
      390 ${webhook}: the status and the time below the name, and each value in its place
        ${STEADY}
      390 keys: scopes with their label
        document.querySelector('td[data-label=Scopes]').textContent === 'everything'
      390 templates: each picture at the left, below its name
        [...document.querySelectorAll('tr:has(iframe)')].every((row) => { const [name, picture] = ['td.main', 'td:has(iframe)'].map((one) => row.querySelector(one).getBoundingClientRect()); return picture.left === name.left && picture.top >= name.bottom })
      390 settings: each label of a fact on one line if its value is below
        [...document.querySelectorAll('dt')].every((one) => one.nextElementSibling.offsetTop < one.offsetTop + 20 || one.clientWidth === one.parentNode.clientWidth)
      390 ${unreached}: space above the first heading
        box('#head').bottom + 24 <= box('h2').top
      390 broadcasts/${broadcasts.braked}: a limit below its outcome, and no cut column
        box('#outcomes .detail').top >= box('#outcomes tr:has(.detail) a').bottom - 2 && box('#outcomes table').width <= box('#outcomes .scroll').width
      390 ${unreached}: a link to a long name on one line
        box('.back').height < 30
      1280 suppressions: the responses with the spare width
        box('td.wide').width > box('td.main').width
      1280 integration/recipients: what happens on one line
        [...document.querySelectorAll('td.wrap div')].every((one) => one.querySelector('.detail') || one.clientHeight < 30)
      1280 broadcasts: rows of one line, where a cut name has a tooltip
        [...document.querySelectorAll('tbody tr')].every((row) => row.clientHeight <= 45) && [...document.querySelectorAll('td.main div')].every((one) => one.scrollWidth <= one.clientWidth || one.title !== '')
      390 broadcasts: whole names
        [...document.querySelectorAll('td.main div')].every((one) => one.scrollWidth <= one.clientWidth && style('td.main').whiteSpace === 'normal')
      1280 background-jobs: the whole progress on one line
        [...document.querySelectorAll('td:has(.bar) div')].every((one) => one.scrollWidth <= one.clientWidth && one.clientHeight < 40)
      390 templates: pictures that can't be resized
        style('iframe.thumb').resize === 'none'
      1280 templates: rows of at most 105 px
        box('tbody tr').height <= 105
      390 templates/${lived.template}: the preview, the editor, the sample values
        box('iframe').bottom <= box('#editor').top && box('#editor').bottom <= box('.rows').top
      390 broadcasts/${broadcasts.sent}: headings of outcomes
        box('#outcomes th').height > 20
      1280 : a navigation that needs no scrolling
        document.querySelector('nav').scrollHeight <= document.querySelector('nav').clientHeight
      390 broadcasts: the time of the update below the title
        box('#updates').top >= box('#lead').top && box('#updates').bottom <= box('tbody').top
      1280 broadcasts: the time of the update below the title
        box('#updates').top >= box('#lead').top && box('#updates').bottom <= box('tbody').top
      1280 templates/${lived.template}: an editor wider than the preview
        box('#editor').width > 1.2 * box('iframe').width && style('[name=html]').whiteSpace === 'pre-wrap'
      390 ${contact}: properties before the messages
        box('form.rows').bottom <= box('.columns > div').top
      390 emails/${lived.bounced}: who it is from and to above what happened
        box('#first').top > box('#lead').bottom && box('#first').bottom <= box('#timeline').top
      390 whatsapp/${lived.message}: who it is to above what happened
        box('#first').top > box('#lead').bottom && box('#first').bottom <= box('#timeline').top
      1280 ../../operator/teams/${team.id}: a label above each limit
        [...document.querySelectorAll('.beside > label')].every((one) => getComputedStyle(one).position === 'static')
      390 ../../operator/teams/${team.id}: the plan beside its first limit
        box('select').top === box('.select + .text input').top
      390 audit: the action before its object
        box('td.main').bottom <= box('td.wrap:not(.main)').top + 2
      390 keys/${key}: buttons below the title and the menu beside it
        box('.acts').top >= box('h1').bottom && box('#more').left >= box('h1').right
      390 audit: the days side by side
        box('.date').top === box('.date ~ .date').top
    `
    for (const row of places.split(/^ {6}(?=\d)/m).slice(1)) {
      const [, width, path, place, expected] = /^(\d+) (\S*): (.*)\n([\s\S]*)/.exec(row) ?? []
      await page.setViewportSize({ width: Number(width), height: 800 })
      await page.goto(`${home}${inTeam}/${path}`)
      t.equal(await page.evaluate(`${MEASURES} ${expected}`), true, `${path} at ${width} px: ${place}`)
    }
  })

  t.test('choices are level with their labels, and tables with each other', async (t) => {
    const { page } = await signInWith(browser, service, { t, team: team.id })
    await page.goto(`${home}${inTeam}/settings`)
    const gaps = await page.evaluate<Record<string, number>>(`(() => {
      const box = (element) => element.getBoundingClientRect()
      const middle = ({ top, bottom }) => (top + bottom) / 2
      const field = document.querySelector('.radios')
      const [radio, hint, legend] = ['input', '.hint', 'legend'].map((each) => field.querySelector(each))
      const words = document.createRange()
      words.selectNodeContents(radio.parentNode)
      const start = document.createRange()
      start.selectNodeContents(legend)
      return {
        level: Math.round(Math.abs(middle(box(radio)) - middle(words.getBoundingClientRect()))),
        legend: Math.round(box(start).left - box(field).left),
        hint: box(radio).top - box(hint).bottom > 6 ? 0 : 1,
      }
    })()`)
    t.strictSame(gaps, { level: 0, legend: 0, hint: 0 })
    await page.goto(`${home}/operator/senders`)
    const lefts = await page.evaluate<string[]>(
      "[...document.querySelectorAll('th:first-child')].map((cell) => getComputedStyle(cell).paddingLeft)",
    )
    t.equal(lefts.length, 2)
    t.equal(new Set(lefts).size, 1, `${lefts}`)
  })

  t.test('nothing covers a notice on a live page', async (t) => {
    const stopped = await makeTeam(service)
    await service.database.transaction((tx) => suspendTeam({ tx, now: new Date(), actor: 'cli' }, stopped.id))
    const rights = { email: 'stopped@example.com', operator: false }
    const { page } = await signInWith(browser, service, { t, team: stopped.id, ...rights })
    const name = `/teams/${stopped.id} suspended`
    t.equal(await page.locator('#pause').count(), 1)
    t.equal(await page.locator('.notice').count(), 1)
    await isFramed(t, page, name, 'A team')
  })

  t.test('the sign-in pages are accessible and fit', async (t) => {
    const context = await browser.newContext({ reducedMotion: 'reduce' })
    const page = await context.newPage()
    const wish = { email: 'ana@example.com', team: team.id, role: 'owner', operator: true } as const
    const { secret } = await linkFor(byCli(service.database), wish)
    for (const [path, name] of [
      ['/login', '/login'],
      [`/login/${secret}`, '/login/link'],
    ] as const)
      if (isWanted(name)) await lookAt(t, page, home + path, name)
    await context.close()
  })

  t.test('pages are accessible in dark mode, zoomed and by keyboard', async (t) => {
    const { page } = await signInWith(browser, service, { t, team: team.id }, { colorScheme: 'dark' })
    const places = [
      '',
      '/emails',
      `/emails/${lived.bounced}`,
      `/templates/${lived.template}`,
      '/suppressions',
    ]
    for (const place of places) {
      await page.setViewportSize(WIDE)
      await page.goto(`${home}/teams/${team.id}${place}`)
      await isAccessible(t, page, `${place} in the dark`)
      // Same as 1,280 px at 200 %.
      await page.setViewportSize({ width: 640, height: 400 })
      await fits(t, page, `${place} at 200 %`)
    }
    await page.setViewportSize(WIDE)
    await page.reload()
    const order: string[] = []
    for (let presses = 0; presses < 6; presses += 1) {
      await page.keyboard.press('Tab')
      order.push(
        await page.evaluate<string>('document.activeElement.textContent.trim() || document.activeElement.id'),
      )
    }
    t.match(order.join(' | '), /^Skip to content \| Heliograph \| q \| /)
    t.equal(
      await page.evaluate<string>("getComputedStyle(document.querySelector('button')).transitionDuration"),
      '0s',
      'nothing moves for those who want it so',
    )
    await page.locator('main summary', { hasText: 'Add a suppression' }).click()
    await page.evaluate("for (const form of document.querySelectorAll('main form')) form.noValidate = true")
    await page.getByLabel('Email address', { exact: true }).fill('no')
    await page.getByLabel('Reason', { exact: true }).fill('Asked by phone')
    await page.getByRole('button', { name: 'Suppress address', exact: true }).click()
    await page.getByText('Email address must be an email address').last().waitFor()
    t.match(
      await page.evaluate<string>('document.activeElement.outerHTML'),
      /name="email"[^>]* value="no"[^>]* aria-invalid="true"/,
      'the focus is in the field with the fault',
    )
  })

  t.test("a list is small, loads nothing remote and doesn't shift", async (t) => {
    const { page } = await signInWith(browser, service, { t, team: lived.team.id })
    const bytes = new Map<string, number>()
    page.on('response', async (response) => {
      const body = await response.body().catch(() => Buffer.alloc(0))
      bytes.set(response.url(), body.byteLength)
    })
    await page.goto(`${home}/teams/${lived.team.id}/emails`, { waitUntil: 'networkidle' })
    t.equal(await page.locator('tbody tr').count(), 50)
    t.ok([...bytes.keys()].every((url) => url.startsWith(service.base)))
    const size = bytes.get(page.url()) ?? 0
    t.ok(size > 10_000 && size <= 60 * 1024, `${size} bytes`)
    const moved = await page.evaluate<number>(`new Promise((resolve) => {
      let sum = 0
      new PerformanceObserver((list) => {
        for (const { value } of list.getEntries()) sum += value
      }).observe({ type: 'layout-shift', buffered: true })
      setTimeout(() => resolve(sum), 100)
    })`)
    t.ok(moved < 0.02, `moved by ${moved}`)
    const height = await page.evaluate<number>("document.querySelector('tbody tr').offsetHeight")
    t.ok(height >= 44 && height <= 45, `a row is ${height} px high`)
  })
}
