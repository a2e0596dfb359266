/** Prints the costs of a run's faults as a table, on the terminal and in RESULTS.md. */
import { writeFile } from 'node:fs/promises'
import { cpus, release, totalmem } from 'node:os'
import { join } from 'node:path'
import type { Line } from './run.ts'

const RESULTS = join(import.meta.dirname, 'RESULTS.md')

const COLUMNS = ['', 'fault', 'load', 'accepted', 'repeated', 'after acceptance', 'recovered in, s']

// A note may contain a provider's message or several lines of an error.
const row = (cells: readonly (string | number)[]): string =>
  `| ${cells.map((cell) => String(cell).replaceAll(/\s+/g, ' ').replaceAll('|', '\\|')).join(' | ')} |`

export const HEAD = [row(COLUMNS), row(COLUMNS.map(() => '---'))]

const count = (number: number): string => (number === 0 ? '' : String(number))

export function rowOf({ fault, outcome, held }: Line): string {
  const { accepted, lost, repeated, after_answer, over, recovered, allowed = 0, note = '' } = outcome
  const time = recovered === null ? 'never' : recovered < 0.05 ? '' : recovered.toFixed(1)
  return row([
    fault.id,
    note === '' ? fault.words : `${fault.words} (${note})`,
    fault.load,
    accepted,
    count(repeated),
    allowed === 0 ? count(after_answer) : `${after_answer} of ${allowed}`,
    held ? time : `${time || 0}, **failed**: ${lost} lost, ${over} over a limit`,
  ])
}

/** Summarizes the guarantees of a run. */
function summary(lines: readonly Line[]): string {
  const passed = lines.filter(({ held }) => held).length
  const sum = (name: 'lost' | 'over'): number => lines.reduce((all, { outcome }) => all + outcome[name], 0)
  return `${passed} of ${lines.length} faults passed: ${sum('lost')} accepted messages lost, ${sum('over')} over a limit.`
}

const INTRO = `# Results of \`npm run test:chaos\`

Each fault runs against a new database, two API processes and two workers. *Singles* are emails sent one per
request, and *latency* is the relay's. An empty cell is 0.

- *repeated*: copies beyond the first
- *after acceptance*: copies of messages that the relay had already accepted, and how many are allowed. Only a
  killed or frozen worker may cause them
- *recovered in*: seconds from the end of the fault until the relay had all messages`

/** Writes the table of a complete run. @param postgres the server's version. */
export async function writeResults(lines: readonly Line[], postgres: string): Promise<void> {
  const [cpu] = cpus()
  const memory = Math.round(totalmem() / 1024 ** 3)
  const date = new Date().toISOString().slice(0, 16).replace('T', ' ')
  const machine = `${cpus().length} × ${cpu?.model.trim()}, ${memory} GB, ${process.platform} ${release()}`
  const about = `${machine}; Node ${process.version}, PostgreSQL ${postgres}; ${date} UTC`
  await writeFile(
    RESULTS,
    `${[INTRO, '', summary(lines), '', about, '', ...HEAD, ...lines.map(rowOf)].join('\n')}\n`,
  )
}
