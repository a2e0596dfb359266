/** Checks that db/RETENTION.md lists each table with personal data. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ROOT } from '../../../support/program.ts'
import t from '../../../support/tap.ts'

/** Tables without personal data: counts, settings, credentials, and objects of the complete team. */
const OF_NOBODY = `
  allowances api_keys broadcast_figures broadcasts counters daily_figures dashboard_seats database_home domain_ramp_reports
  domain_ramps domains hourly_figures figure_deltas pause_history plans process_marks processes refused_calls relay_tokens resumed_teams
  secret_canary sender_reports
  subscriptions teams template_versions templates topic_counts upkeep webhook_endpoints whatsapp_account_events
  whatsapp_numbers whatsapp_templates`

t.test('lists each table with personal data', async (t) => {
  const folder = join(ROOT, 'db/migrations')
  const files = await Promise.all((await readdir(folder)).map((file) => readFile(join(folder, file), 'utf8')))
  const tables = files.flatMap((text) =>
    [...text.matchAll(/^create (?:unlogged )?table (\w+)/gm)].map(([, name]) => name ?? ''),
  )
  const page = await readFile(join(ROOT, 'db/RETENTION.md'), 'utf8')
  const [, list = ''] = /\n\n(\| what \| tables \|[\s\S]*?)\n\n/.exec(page) ?? []
  const cells = list.split('\n').map((row) => row.split(' | ')[1] ?? '')
  const named = cells.flatMap((cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name ?? ''))
  t.strictSame(
    [...named, ...(OF_NOBODY.match(/\w+/g) ?? [])].sort(),
    tables.sort(),
    'RETENTION.md lists each table with personal data, and OF_NOBODY in this file the others',
  )
})
