/**
 * Pages of templates with the maximum number of slots are fast. Measures the CPU time of the main thread per
 * request, including the client's part.
 */
import { broadcastingOf } from '../../support/broadcasting.ts'
import { signedIn, type Visitor } from '../../support/dashboard.ts'
import { formTo } from '../../support/forms.ts'
import { world } from '../../support/service.ts'
import t from '../../support/tap.ts'

const SLOTS = 10_000
/** Limit for the CPU time, in milliseconds. A few times the usual. */
const MOST = 500

/** Builds HTML with slots whose long names only differ at the end. */
const htmlOf = (end: string): string =>
  Array.from({ length: SLOTS }, (_, index) => `{{${'a'.repeat(75)}${10_000 + index}${end}}}`).join('')

/** Returns the lowest CPU time of three requests, in milliseconds. */
async function timeOf(visitor: Visitor, path: string): Promise<number> {
  const times: number[] = []
  for (let visits = 0; visits < 3; visits++) {
    const before = process.threadCpuUsage()
    const { status } = await visitor.get(path)
    const { user, system } = process.threadCpuUsage(before)
    if (status !== 200) throw new Error(`${path} answered ${status}`)
    times.push((user + system) / 1_000)
  }
  return Math.min(...times)
}

t.test('pages of a template with 10,000 slots are fast', async (t) => {
  const { service, team, cli } = await world(t, { publicUrl: 'https://example.com' })
  const editor = await signedIn(service, { team: team.id, role: 'editor' })
  const args = ['template', 'create', team.id, '--name', 'many', '--html', '-']
  const { id } = await cli.json(args, { input: htmlOf('a') })
  const { create } = await broadcastingOf(service, team)
  const broadcast = `/teams/${team.id}/broadcasts/${await create({ template_id: id })}`
  const template = `/teams/${team.id}/templates/${id}`
  const form = formTo((await editor.get(template)).html, `${template}/draft`)
  const saved = await editor.post(`${template}/draft`, { ...form, html: htmlOf('b') })
  t.equal(saved.status, 303)
  for (const path of [broadcast, `${broadcast}/edit?step=when`, template]) {
    const time = await timeOf(editor, path)
    t.ok(time < MOST, `${path}: ${Math.round(time)} ms`)
  }
})
