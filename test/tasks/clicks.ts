/** Performs the twenty tasks of tasks.ts in a real browser, and counts clicks. Run by `npm run test:tasks`. */
import type { Browser } from 'playwright-core'
import { publishDraft, saveDraft } from '../../db/content/templates/draft.ts'
import { saveTemplate } from '../../db/content/templates/save.ts'
import { launchBrowser, signInWith } from '../support/browser.ts'
import { handOf } from '../support/hand.ts'
import { livedIn } from '../support/lived-in.ts'
import { byCli, makeTeam, type Service, startService } from '../support/service.ts'
import t from '../support/tap.ts'
import { TASKS } from './tasks.ts'

/** How long one step may take on a busy machine, in milliseconds. */
const PATIENCE_MS = 60_000

const browser = await launchBrowser(t, 'the tasks of the dashboard')
if (browser) await tasks(browser)

/** Stores a template with two versions. */
async function storeTemplate({ database }: Service, team: string): Promise<void> {
  const html = '<p>Hello, <a href="{{unsubscribe_url}}">leave</a></p>'
  await database.transaction(async (tx) => {
    const by = byCli(tx)
    const { id, version_id } = await saveTemplate(by, team, { name: 'Monthly news', html, text: '' })
    const changed = { html: html.replace('Hello', 'Good morning'), text: '', seen: version_id }
    const { draft } = await saveDraft(by, team, id, changed)
    await publishDraft(by, team, id, { draft: draft?.id ?? '', version: version_id })
  })
}

async function tasks(browser: Browser): Promise<void> {
  const service = await startService(t, { publicUrl: 'http://localhost' })
  const { team } = await livedIn(service)
  const other = await makeTeam(service)
  await storeTemplate(service, team.id)
  for (const [place, { what, role, most, walk }] of TASKS.entries())
    t.test(`${what}, as ${role}: at most ${most} clicks`, async (t) => {
      const isOperator = role === 'operator'
      const { page, context } = await signInWith(browser, service, {
        ...{ t, team: team.id, email: `${role}-${place}@example.com`, operator: isOperator },
        role: isOperator ? 'viewer' : role,
        ...(role === 'owner' ? { also: other.id } : {}),
      })
      context.setDefaultTimeout(PATIENCE_MS)
      await page.goto(`${service.base}/dashboard/teams/${team.id}`)
      const hand = handOf(page)
      await walk(hand)
      t.comment(`${hand.clicks()} clicks, ${hand.steps()} steps`)
      t.ok(hand.clicks() <= most, `${hand.clicks()} clicks`)
      await context.close()
    })
}
