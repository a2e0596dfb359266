/**
 * The files for operators under workers/monitoring: alert rules and a dashboard that use existing metrics.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { METRICS } from '../../../db/process/metrics.ts'
import { GAUGES } from '../../../db/stats/fleet/exposition.ts'
import { programMissing, runProgram } from '../../support/programs.ts'
import t from '../../support/tap.ts'

const FOLDER = join(import.meta.dirname, '../../../workers/monitoring')
const RULE_TESTS = ['alerts.test.yml', 'alerts-week.test.yml']
const figures = [...Object.keys(METRICS), ...Object.keys(GAUGES)]

for (const file of ['alerts.yml', 'grafana-dashboard.json']) {
  t.test(`${file} uses only metrics that the service reports`, async (t) => {
    const text = await readFile(join(FOLDER, file), 'utf8')
    const asked = new Set([...text.matchAll(/\bheliograph_\w+/g)].map(([name]) => name))
    t.ok(asked.size > 5)
    const unknown = [...asked].filter((name) => !figures.includes(name.replace(/_(bucket|count|sum)$/, '')))
    t.strictSame(unknown, [])
  })
}

t.test('the dashboard and workers/README.md have every metric', async (t) => {
  const [panels = '', page = ''] = await Promise.all(
    ['grafana-dashboard.json', '../README.md'].map((file) => readFile(join(FOLDER, file), 'utf8')),
  )
  t.equal(figures.filter((name) => !panels.includes(name)).join(), '', 'grafana-dashboard.json has a panel')
  const isListed = (name: string) =>
    new RegExp(`\\b${name}\\b|\`${name.replace('heliograph_', '')}\\b`).test(page)
  t.strictSame(
    figures.filter((name) => !isListed(name)),
    [],
  )
})

t.test('each alert has and links its runbook entry', async (t) => {
  const [rules, runbook] = await Promise.all(
    ['alerts.yml', 'RUNBOOK.md'].map((file) => readFile(join(FOLDER, file), 'utf8')),
  )
  const alerts = [...(rules ?? '').matchAll(/- alert: (\w+)[\s\S]*?runbook: (\S+)/g)]
  const entries = [
    ...(runbook ?? '').matchAll(/^## (\w+)\n\*\*Means:\*\*[\s\S]*?\n\*\*Look:\*\*[\s\S]*?\n\*\*Do:\*\*/gm),
  ]
  const names = alerts.map(([, name]) => name)
  const headings = entries.map(([, name]) => name)
  t.strictSame(names, headings)
  for (const [, name = '', link] of alerts)
    t.equal(link, `workers/monitoring/RUNBOOK.md#${name.toLowerCase()}`)
})

t.test('each alert fires in a test of the rules', async (t) => {
  const [rules, ...tests] = await Promise.all(
    ['alerts.yml', ...RULE_TESTS].map((file) => readFile(join(FOLDER, file), 'utf8')),
  )
  const firing = [...tests.join('').matchAll(/alertname: (\w+)\n +exp_alerts:\n +- exp_labels/g)]
  t.strictSame(
    [...(rules ?? '').matchAll(/- alert: (\w+)/g)]
      .map(([, name]) => name)
      .filter((name) => !firing.some(([, fired]) => fired === name)),
    [],
  )
})

t.test('promtool accepts the alert rules and they fire correctly', async (t) => {
  const missing = await programMissing('promtool', 'prometheus')
  if (missing) return void t.plan(0, missing)
  const checked = await runProgram('promtool', ['check', 'rules', 'alerts.yml'], { cwd: FOLDER })
  t.match(checked.stdout, /SUCCESS: 18 rules found/)
  const tested = await runProgram('promtool', ['test', 'rules', ...RULE_TESTS], { cwd: FOLDER }).catch(
    (error) => error,
  )
  // Each file has its own result.
  const results = tested.stdout.match(/SUCCESS|FAILED/g)
  t.strictSame(results, Array(RULE_TESTS.length).fill('SUCCESS'), String(tested.stderr))
})

t.test('promtool accepts every query of the dashboard', async (t) => {
  const missing = await programMissing('promtool', 'prometheus')
  if (missing) return void t.plan(0, missing)
  const { panels } = JSON.parse(await readFile(join(FOLDER, 'grafana-dashboard.json'), 'utf8'))
  const queries: string[] = panels.flatMap(({ targets }: { targets: { expr: string }[] }) =>
    targets.map(({ expr }) => expr.replaceAll('$__rate_interval', '5m')),
  )
  t.ok(queries.length > 20)
  const rules = queries.map((query, index) => ({ record: `query_${index}`, expr: query }))
  const folder = t.testdir({ 'queries.json': JSON.stringify({ groups: [{ name: 'dashboard', rules }] }) })
  const { stdout } = await runProgram('promtool', ['check', 'rules', join(folder, 'queries.json')])
  t.match(stdout, /SUCCESS/)
})
