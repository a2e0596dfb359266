/**
 * Imports contacts or suppressions from a CSV file: the upload, the progress, and the rejected records as
 * CSV. import-draft.ts has the steps between upload and start.
 */

import { storeDraft } from '../../../db/audience/import/draft.ts'
import { refusedRecords, showImport } from '../../../db/audience/import/import.ts'
import { type ImportRow, importsOfTeam } from '../../../db/audience/import/imports.sql.ts'
import type { Purpose } from '../../../db/audience/import/mapping.ts'
import { RequestError } from '../../../db/errors.ts'
import {
  type BackgroundJobRow,
  backgroundJobById,
} from '../../../db/maintenance/background-jobs/background-jobs.sql.ts'
import { plural } from '../../../db/plural.ts'
import { type Cell, headed, number, status, text, time } from '../components/cell.ts'
import { paceWords } from '../components/pace.ts'
import type { Link, Section } from '../components/section.ts'
import { auditRead } from '../server/action.ts'
import { action, buildFacts, buildForm, buildTable, compact, field, get, large } from '../server/builders.ts'
import { csvFile } from '../server/csv.ts'
import { type PageTeam, redirect, show, type TeamPage, teamPath } from '../server/page.ts'
import { TEXTS } from '../texts.ts'
import { describeRun, describeStart } from './background-job.ts'
import { draftView, importDraftPages, purposeOf, uploads } from './import-draft.ts'
import { madeTiles, refusedTable } from './import-outcome.ts'

const REFUSALS_SHOWN = 50
/** How long an import runs before its rate is shown, in milliseconds. */
const PACE_SHOWN_AFTER_MS = 5_000

const MAX_IMPORTS = 20

const NOTES: Readonly<Record<Purpose, string>> = {
  contacts:
    'The first row must contain the column names. You choose what to do with each column in the next step. Files exported from Heliograph can be imported again.',
  suppressions:
    'A list of addresses to suppress, such as one from another service. The first row must contain the column names. You choose what to do with each column in the next step.',
}

function importState({ draft, fault, reading, done, records }: ImportRow): Cell {
  if (draft) return status('not started')
  if (fault !== null) return status('failed')
  return reading || done < records ? status('running', { tone: 'busy' }) : status('done', { tone: 'good' })
}

const doneWords = ({ done, records }: ImportRow): string => `${number(done).text} of ${number(records).text}`

const form = (purpose: Purpose): TeamPage =>
  get('editor', `/teams/:team/${purpose}/import`, async ({ team, now }, { database }) => {
    const { href, label } = uploads(team, purpose)
    const imports = await importsOfTeam(database, team.id, purpose, MAX_IMPORTS)
    return show({
      title: label,
      back: { href: teamPath(team, purpose), label: headed(purpose) },
      sections: [
        buildForm(href, 'Upload', {
          note: NOTES[purpose],
          multipart: true,
          more: [{ href: teamPath(team, purpose, 'import', 'example.csv'), label: 'Example CSV' }],
          fields: [
            field('file', 'CSV file, up to 8 MB', {
              type: 'file',
              required: true,
              hint: 'Separated by commas, semicolons or tabs, in UTF-8, UTF-16 or Windows-1252.',
            }),
          ],
        }),
      ],
      aside: [
        buildTable(
          imports,
          (one) => ({
            File: text(one.file_name, {
              href: teamPath(team, 'contacts', 'imports', one.id),
              detail: `${one.draft ? 'open to continue · ' : ''}by ${one.created_by}`,
            }),
            Status: importState(one),
            Done: text(one.draft ? plural(one.records, 'record') : doneWords(one)),
            When: time(one.created_at, now),
          }),
          { title: 'Imports of the last week', wrap: ['File'], empty: 'No imports in the last week.' },
        ),
      ],
    })
  })

/** A file to start from, whose first row has the column names. */
const EXAMPLES: Readonly<Record<Purpose, { header: readonly string[]; rows: readonly string[][] }>> = {
  contacts: {
    header: ['email', 'name', 'city'],
    rows: [
      ['ana@example.com', 'Ana', 'Graz'],
      ['ben@example.com', 'Ben', 'Vienna'],
    ],
  },
  suppressions: {
    header: ['email', 'status', 'reason'],
    rows: [
      ['ana@example.com', 'bounced', '550 5.1.1 User unknown'],
      ['ben@example.com', 'complained', 'Reported as spam'],
    ],
  },
}

const example = (purpose: Purpose): TeamPage =>
  get('editor', `/teams/:team/${purpose}/import/example.csv`, (request) => {
    const { header, rows } = EXAMPLES[purpose]
    async function* lines() {
      yield* rows
    }
    return csvFile(request, `example-${purpose}`, header, lines())
  })

const upload = (purpose: Purpose): TeamPage =>
  action(large('editor'), `/teams/:team/${purpose}/import`, async (by, { team, form: sent }) => {
    const source = sent.get('file') ?? ''
    const given = sent.get('file_name') ?? ''
    if (source.trim() === '')
      throw new RequestError('bad_request', given === '' ? TEXTS.noFile : TEXTS.emptyFile)
    const name = given || 'contacts.csv'
    const file = { name, source, encoding: sent.get('file_encoding') ?? 'UTF-8', purpose }
    const id = await storeDraft(by, team.id, file, by.actor)
    return redirect(teamPath(team, 'contacts', 'imports', id))
  })

const storedLink = (team: PageTeam, id: string, isSuppressing: boolean): Link => ({
  href: isSuppressing
    ? teamPath(team, 'suppressions')
    : `${teamPath(team, 'contacts')}?${new URLSearchParams({ import: id })}`,
  label: isSuppressing ? 'Show suppressions' : 'Show them',
})

/** Describes the rate and remaining time of an import, once its file has been read. */
function describePace({ done, records }: ImportRow, job: BackgroundJobRow | null, now: Date): string {
  const times = { since: job?.begun_at ?? null, progressed_at: job?.progressed_at ?? null }
  return paceWords({ done, left: records - done, ...times }, now, {
    noun: 'record',
    least: PACE_SHOWN_AFTER_MS,
  })
}

function progressTiles(shown: ImportRow, { finished, pace }: { finished: boolean; pace: string }): Section {
  const { records, done, refused, reading, fault, mapping } = shown
  return {
    kind: 'tiles',
    id: 'progress',
    live: !finished,
    tiles: [
      {
        label: fault !== null ? 'Failed' : finished ? 'Done' : reading ? 'Being read' : 'Being imported',
        value: reading ? `${plural(records, 'record')} so far` : doneWords(shown),
        filled: records === 0 ? 0 : Math.round((done / records) * 100),
        detail: headed(pace),
        tone: fault !== null ? 'bad' : finished ? 'good' : 'busy',
      },
      ...madeTiles(shown, mapping),
      { label: 'Rejected', value: refused.toLocaleString('en-US'), tone: refused > 0 ? 'bad' : 'plain' },
    ],
  }
}

const progress = get('editor', '/teams/:team/contacts/imports/:id', async (request, deps) => {
  const { team, params, now } = request
  const shown = await showImport(deps.database, team.id, params.id, REFUSALS_SHOWN)
  if (shown.draft) return show(await draftView(request, deps))
  const { id, file_name, records, done, refused, reading, fault, mapping, created, updated } = shown
  const here = teamPath(team, 'contacts', 'imports', id)
  const finished = fault !== null || (!reading && done === records)
  const job = await backgroundJobById(deps.database, team.id, id)
  const pace = finished ? '' : describePace(shown, reading ? null : job, now)
  const stored = mapping.suppress
    ? `${plural(created + updated, 'address', 'addresses')} suppressed`
    : `${plural(created + updated, 'contact')} stored`
  const progressed = progressTiles(shown, { finished, pace })
  // All sections are live, including the last one.
  const sections: Section[] = [
    {
      kind: 'alerts',
      id: 'outcome',
      live: !finished,
      alerts: compact([
        fault !== null && { tone: 'bad', title: `Nothing was imported: ${fault}` },
        finished &&
          fault === null && {
            tone: 'good',
            title: `${stored}.`,
            link: storedLink(team, id, Boolean(mapping.suppress)),
          },
        refused !== 0 && {
          tone: 'bad',
          title: `${plural(refused, 'record')} rejected${finished ? '' : ' so far'}`,
          text: finished ? 'Download the rejected records, fix them, and import that file.' : undefined,
          link: { href: `${here}/refused.csv`, label: 'Rejected records as CSV' },
        },
      ]),
    },
    refusedTable(shown.refusals, mapping, {
      id: 'refused',
      live: !finished,
      title: refused === 0 ? 'Rejected records' : undefined,
      note: refused > REFUSALS_SHOWN ? `The first ${REFUSALS_SHOWN} rejected records.` : undefined,
      empty: finished ? 'No records were rejected.' : 'No records rejected so far.',
    }),
    ...compact([job && buildFacts(describeStart(job, now), { id: 'facts', live: !finished })]),
  ]
  return show({
    title: file_name,
    state: importState(shown),
    lead: job && !finished ? describeRun(job) : undefined,
    back: uploads(team, purposeOf(mapping)),
    // The rejected records are the main thing once it has ended, otherwise the progress is.
    ...(refused === 0 || !finished
      ? { sections: [progressed, ...sections] }
      : { sections, aside: [progressed] }),
  })
})

const refused = get('editor', '/teams/:team/contacts/imports/:id/refused.csv', async (request, deps) => {
  const { team, params } = request
  const { header, rows } = await refusedRecords(deps.database, team.id, params.id)
  await auditRead(request, deps, {
    action: 'contact.export',
    subject: `rejected records of import ${params.id}`,
  })
  return csvFile(request, 'rejected', header, rows)
})

export const importPages = [
  ...(['contacts', 'suppressions'] as const).flatMap((each) => [form(each), upload(each), example(each)]),
  progress,
  refused,
  ...importDraftPages,
]
