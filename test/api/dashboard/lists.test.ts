/** Lists: pagination and live updates. */
import { connect } from 'node:net'
import { gunzipSync } from 'node:zlib'
import type { Browser, Page } from 'playwright-core'
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { text } from '../../../api/dashboard/components/cell.ts'
import { buildList } from '../../../api/dashboard/server/list.ts'
import { sortable } from '../../../api/dashboard/server/sort.ts'
import { createTopic } from '../../../db/audience/contacts/topics.ts'
import { launchBrowser, signInWith } from '../../support/browser.ts'
import { shows, signedIn } from '../../support/dashboard.ts'
import { deleteEmailRows, insertEmailRows } from '../../support/email-rows.ts'
import { makeTeam, startService } from '../../support/service.ts'
import t, { type Test } from '../../support/tap.ts'

/** The refresh interval of a live page, in milliseconds. */
const EVERY = 5_000

const service = await startService(t)
const { database } = service

const OLDER = { href: '/older', label: 'Search further back', rel: 'next' } as const

/** Creates a team with emails. The subjects are `Letter 1` and so on, oldest first. */
async function teamWith(count: number) {
  const team = await makeTeam(service, { domain: `${crypto.randomUUID()}.test` })
  const store = async (numbers: readonly number[]): Promise<void> => {
    const rows = numbers.map((number) => [uuidv7(), `Letter ${number}`])
    const letters = sql.fragment`
      select ${team.id} as team_id, id, ${team.domain_id} as domain_id, 'hello@example.com' as from_address,
        array['ana@example.org'] as to_emails, subject, '<p>Hello</p>' as html, '["letter"]'::json as tags,
        'queued' as status, now() as created_at, '' as reply_to
      from ${sql.unnest(rows, ['uuid', 'text'])} as letter (id, subject)`
    await insertEmailRows(service, letters)
  }
  if (count > 0) await store(Array.from({ length: count }, (_, at) => at + 1))
  return { team, store, list: `/teams/${team.id}/emails` }
}

/** Returns the pagination links of a list by label. */
const waysOf = (html: string): Record<string, string> =>
  Object.fromEntries(
    [...(/<p class="pages">(.*?)<\/p>/s.exec(html)?.[1] ?? '').matchAll(/href="([^"]*)"[^>]*>(\w+)</g)].map(
      ([, href = '', name = '']) => [
        name,
        href
          .replaceAll('&amp;', '&')
          .replaceAll('&#x3D;', '=')
          .replace(/^\/dashboard/, ''),
      ],
    ),
  )

t.test('an empty search result has one link to older rows', async (t) => {
  const section = buildList(
    { rows: [], first: true, next: [OLDER], further: OLDER, searched: { note: 'Searched back to' } },
    ({ id }: { id: string }) => ({ ID: text(id) }),
    { filtered: true, nothing: 'No match.', none: 'None yet.', many: 'emails' },
  )
  t.strictSame(section.kind === 'table' && [section.start, section.next], [OLDER, []])
  t.equal(section.note, 'Searched back to')
})

t.test('a complete list is sorted by a column, both ways', async (t) => {
  const team = await makeTeam(service)
  const by = { now: new Date(), actor: 'cli' }
  for (const name of ['Offers', 'News 10', 'News 9'])
    await database.transaction((tx) => createTopic({ tx, ...by }, team.id, { name }))
  const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
  const sorted = async (sort: string): Promise<string> =>
    (await viewer.get(`/teams/${team.id}/topics?${new URLSearchParams({ sort })}`)).html
  shows(t, { html: await sorted('Name') }, /News 9 .*News 10 .*Offers /)
  shows(t, { html: await sorted('-Name') }, /Offers .*News 10 .*News 9 /)
  t.match(await sorted('Name'), /aria-sort="ascending"><a href="[^"]*topics\?sort&#x3D;-Name">Name/)
  t.notMatch(await sorted('nothing'), 'aria-sort')
})

t.test('numbers are sorted by value, and missing ones come last', (t) => {
  const rows = ['1,000', '', '9', '20'].map((text) => ({ cells: [{ text, number: true }] }))
  const table = { kind: 'table', columns: [{ label: 'Count', number: true }], rows, empty: '' } as const
  const sorted = (sort: string) => {
    const request = { path: '/topics', query: new URLSearchParams({ sort }) } as Parameters<
      typeof sortable
    >[0]
    return sortable(request, table).rows.map(({ cells }) => cells[0]?.text)
  }
  t.strictSame(sorted('Count'), ['9', '20', '1,000', ''])
  t.strictSame(sorted('-Count'), ['1,000', '20', '9', ''])
  t.end()
})

t.test('a live tab gets 304, or a compressed fragment', async (t) => {
  const { team, store, list } = await teamWith(50)
  const editor = await signedIn(service, { team: team.id, role: 'editor' })
  const { port } = new URL(service.base)
  const cookie = [...editor.cookies].map(([name, value]) => `${name}=${value}`).join('; ')
  /** Returns the raw bytes of a response. */
  const bytes = (accept: string, tag = '') =>
    new Promise<Buffer>((resolve, reject) => {
      const parts: Buffer[] = []
      const socket = connect(Number(port), '127.0.0.1').on('error', reject)
      const lines = [
        `Accept: ${accept}`,
        'Accept-Encoding: gzip',
        `Cookie: ${cookie}`,
        `If-None-Match: "${tag}"`,
      ]
      socket.on('data', (part) => parts.push(part)).on('end', () => resolve(Buffer.concat(parts)))
      socket.write(
        `GET /dashboard${list} HTTP/1.1\r\nHost: localhost\r\n${lines.join('\r\n')}\r\nConnection: close\r\n\r\n`,
      )
    })
  const page = await bytes('text/html')
  t.notMatch(page.toString(), /content-encoding|^etag/im)
  const tag = /data-tag="([\w-]+)"/.exec(page.toString())?.[1] ?? ''
  const fragment = 'application/vnd.heliograph.fragment'
  const same = await bytes(fragment, tag)
  t.match(same.toString(), /^HTTP\/1\.1 304 /)
  t.ok(same.length <= 2_048, `${same.length} bytes`)
  await store([51])
  const changed = await bytes(fragment, tag)
  t.match(changed.toString('latin1'), /^HTTP\/1\.1 200 [\s\S]*content-encoding: gzip/i)
  const html = gunzipSync(changed.subarray(changed.indexOf('\r\n\r\n') + 4)).toString()
  t.match(html, 'Letter 51')
  t.notMatch(html, /<form|csrf/)
  t.ok(changed.length < page.length / 4, `${changed.length} of ${page.length} bytes`)
})

t.test('Older, Newer and First keep the filter and the pages', async (t) => {
  const { team, list } = await teamWith(120)
  const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
  const open = async (path: string | undefined) => {
    const page = await viewer.get(path ?? 'no such way')
    const letters = [...page.html.matchAll(/>\s*Letter (\d+)\s*</g)].map(([, number]) => Number(number))
    return { ways: waysOf(page.html), from: letters[0], to: letters.at(-1), html: page.html }
  }
  const first = await open(`${list}?tag=letter`)
  t.match(first, { from: 120, to: 71 })
  t.strictSame(Object.keys(first.ways), ['Older'])
  const second = await open(first.ways.Older)
  t.match(second, { from: 70, to: 21 })
  t.strictSame(Object.keys(second.ways), ['First', 'Newer', 'Older'])
  const third = await open(second.ways.Older)
  t.match(third, { from: 20, to: 1 })
  t.strictSame(Object.keys(third.ways), ['First', 'Newer'])
  const back = await open(third.ways.Newer)
  t.match(back, { from: 70, to: 21 })
  t.strictSame(back.ways, second.ways, 'the page is the one that was left')
  t.equal(back.ways.Newer, `${list}?tag=letter`)
  t.equal(third.ways.First, `${list}?tag=letter`)
  shows(t, third, 'Tag: letter')
})

const browser = await launchBrowser(t, 'lists that keep up by themselves')
if (browser) await whileLooking(browser)

async function whileLooking(browser: Browser): Promise<void> {
  /** Opens a list in a browser with a stopped clock. The test advances it. */
  async function look(t: Test, count: number, query = '') {
    const { team, store, list } = await teamWith(count)
    const { page } = await signInWith(browser, service, {
      t,
      team: team.id,
      email: `reader-${team.id}@example.com`,
    })
    await page.clock.install()
    await page.clock.pauseAt(Date.now() + 60_000)
    await page.goto(`${service.base}/dashboard${list}${query}`)
    const asked: string[] = []
    page.on('request', (request) => {
      if (request.resourceType() === 'fetch') asked.push(request.url())
    })
    return { page, team, store, asked, fresh: page.locator('.fresh'), pause: page.locator('#pause') }
  }

  const pass = (page: Page, times = 1): Promise<void> => page.clock.runFor(times * EVERY)
  const first = (page: Page): Promise<string> => page.locator('main tbody tr').first().innerText()

  t.test('a list counts new rows, and shows them on request', async (t) => {
    const { page, team, store, fresh } = await look(t, 3, '?tag=letter')
    await store([4, 5])
    await database.query(sql.unsafe`
      update email_states set status = 'delivered'
      where (team_id, id) in (select team_id, id from emails where team_id = ${team.id} and subject = 'Letter 2')`)
    await pass(page)
    await fresh.waitFor()
    t.equal(await fresh.innerText(), '2 new – show')
    t.match(await first(page), 'Letter 3')
    t.match(await page.locator('tr', { hasText: 'Letter 2' }).innerText(), 'delivered', 'its state is of now')
    await store([6])
    await pass(page)
    await page.getByText('3 new – show').waitFor()
    t.equal(await fresh.count(), 1)
    await fresh.getByRole('link').click()
    await page.getByRole('link', { name: 'Letter 6' }).waitFor()
    t.match(await first(page), 'Letter 6')
    t.equal(await fresh.count(), 0)
    t.match(page.url(), /\?tag=letter$/)
  })

  t.test('the first row of an empty list appears automatically', async (t) => {
    const { page, store } = await look(t, 0)
    await page.getByText('No emails yet.').waitFor()
    await store([1])
    await pass(page)
    await page.getByRole('link', { name: 'Letter 1' }).waitFor()
  })

  t.test('a list counts removed rows', async (t) => {
    const { page, team, fresh } = await look(t, 3)
    await deleteEmailRows(
      service,
      sql.fragment`id in (
      select id from emails where team_id = ${team.id} and subject = 'Letter 2')`,
    )
    await pass(page)
    await fresh.waitFor()
    t.equal(await fresh.innerText(), '1 removed – show')
  })

  t.test('pausing stops refreshes on all pages until resumed', async (t) => {
    const { page, store, asked, fresh, pause } = await look(t, 3)
    t.equal(await pause.getAttribute('aria-pressed'), 'false')
    const boxes = await Promise.all(['h1', '#pause', '#list'].map((one) => page.locator(one).boundingBox()))
    const [title = 0, own = 0, list = 0] = boxes.map((box) => box?.y)
    t.ok(title < own && own < list, 'it is between the title and the list')
    await pause.click()
    t.equal(await pause.innerText(), 'Start refreshing')
    t.equal(await pause.getAttribute('aria-pressed'), 'true')
    await store([4])
    await pass(page, 6)
    await page.reload()
    t.equal(await pause.innerText(), 'Start refreshing')
    await store([5])
    await pass(page, 6)
    t.strictSame(asked, [], 'none while paused')
    await pause.click()
    t.equal(await pause.innerText(), 'Stop refreshing')
    await fresh.waitFor()
    t.equal(await fresh.innerText(), '1 new – show', 'what came since the reload')
    t.equal(asked.length, 1, 'it asks at once, before the clock continues')
  })

  t.test("a page of older rows isn't live", async (t) => {
    const { page, pause } = await look(t, 60)
    t.equal(await pause.count(), 1)
    await page.getByRole('link', { name: 'Older' }).click()
    await page.getByRole('link', { name: 'Newer' }).waitFor()
    t.equal(await pause.count(), 0)
    await page.getByRole('link', { name: 'Newer' }).click()
    await page.getByRole('link', { name: 'Letter 60' }).waitFor()
    t.equal(await pause.count(), 1)
  })
}
