/** Contacts from a CSV file: the form, how far an import has come, and what it refused as a file. */
import { importOf, refusedRecords, showImport, storeImport } from '../../../db/audience/import/import.ts'
import { importsOfTeam } from '../../../db/audience/import/imports.sql.ts'
import { Refusal } from '../../../db/errors.ts'
import { beginWork } from '../../../db/upkeep/work/work.ts'
import { number, plural, text, time } from '../drawn/cell.ts'
import type { Section } from '../drawn/section.ts'
import { noteLook } from '../served/act.ts'
import { redirect, show, type TeamPage, teamPath } from '../served/page.ts'
import { csvFile } from './csv.ts'

/** How many refused records the page itself shows. */
const SHOWN = 50

const form: TeamPage = {
  method: 'GET',
  path: '/teams/:team/contacts/import',
  access: 'editor',
  async handle({ team, now }, { database }) {
    const imports = await importsOfTeam(database, team.id, 20)
    return show({
      title: 'Import contacts',
      back: { href: teamPath(team, 'contacts'), label: 'Contacts' },
      sections: [
        {
          kind: 'form',
          note: 'The first line names the columns. One is “email”; each other is a property. Separated by commas, semicolons or tabs, in UTF-8, UTF-16 or Windows-1252. Contacts that exist keep their status, and get the properties of the file in place of their own. Our own export can be imported again, and so can refused records once they are corrected.',
          action: teamPath(team, 'contacts', 'import'),
          method: 'post',
          multipart: true,
          fields: [{ name: 'file', label: 'CSV file, up to 8 MB', type: 'file', required: true }],
          submit: 'Import',
        },
        {
          kind: 'table',
          title: 'Imports of the last week',
          columns: [
            { label: 'File' },
            { label: 'Records', number: true },
            { label: 'Done', number: true },
            { label: 'By' },
            { label: 'When' },
          ],
          rows: imports.map((one) => ({
            cells: [
              text(one.file_name, { href: teamPath(team, 'contacts', 'imports', one.id) }),
              number(one.records),
              number(one.done),
              text(one.created_by),
              time(one.created_at, now),
            ],
          })),
          empty: 'Nothing was imported lately.',
        },
      ],
    })
  },
}

const start: TeamPage = {
  method: 'POST',
  path: '/teams/:team/contacts/import',
  access: 'editor',
  async handle({ team, form: sent, person }, deps) {
    const source = sent.get('file') ?? ''
    if (source.trim() === '') throw new Refusal('bad_request', 'choose a CSV file first')
    const name = sent.get('file_name') || 'contacts.csv'
    const file = importOf({ name, source })
    await beginWork(deps, {
      kind: 'contact.import',
      id: file.id,
      given: { import_id: file.id, file_name: name },
      team_id: team.id,
      actor: person.email,
      store: (tx, now) => storeImport({ tx, now }, team.id, file, person.email),
    })
    return redirect(teamPath(team, 'contacts', 'imports', file.id))
  },
}

const progress: TeamPage = {
  method: 'GET',
  path: '/teams/:team/contacts/imports/:id',
  access: 'editor',
  async handle({ team, params }, { database }) {
    const shown = await showImport(database, team.id, params.id ?? '')
    const { id, file_name, records, done, refused, reading, fault } = shown
    const here = teamPath(team, 'contacts', 'imports', id)
    const finished = fault !== null || (!reading && done === records)
    const stored = plural(records - refused.length, 'contact')
    // All of it keeps up by itself, the last part too.
    const sections: Section[] = [
      {
        kind: 'tiles',
        id: 'progress',
        live: !finished,
        tiles: [
          {
            label: fault !== null ? 'Failed' : finished ? 'Done' : reading ? 'Being read' : 'Being imported',
            value: reading
              ? `${plural(records, 'record')} so far`
              : `${done.toLocaleString('en-US')} of ${records.toLocaleString('en-US')}`,
            filled: records === 0 ? 0 : Math.round((done / records) * 100),
            tone: fault !== null ? 'bad' : finished ? 'good' : 'busy',
          },
          {
            label: 'Refused',
            value: refused.length.toLocaleString('en-US'),
            tone: refused.length > 0 ? 'bad' : 'plain',
          },
        ],
      },
      {
        kind: 'alerts',
        id: 'outcome',
        live: !finished,
        calm: 'A worker imports it, a thousand records at a time. This page keeps up by itself.',
        alerts: [
          ...(fault === null ? [] : [{ tone: 'bad' as const, title: `Nothing was imported: ${fault}` }]),
          ...(finished && fault === null ? [{ tone: 'good' as const, title: `${stored} stored.` }] : []),
          ...(refused.length === 0
            ? []
            : [
                {
                  tone: 'bad' as const,
                  title: `${plural(refused.length, 'record')} refused`,
                  text: 'The file has each with its line and the reason: fix them and import it again.',
                  link: { href: `${here}/refused.csv`, label: 'Refused records as CSV' },
                },
              ]),
        ],
      },
      {
        kind: 'table',
        id: 'refused',
        live: !finished,
        title: refused.length > SHOWN ? `The first ${SHOWN} refused` : 'Refused',
        columns: [{ label: 'Line', number: true }, { label: 'Why' }],
        rows: refused.slice(0, SHOWN).map(({ line, message }) => ({
          cells: [number(line), text(message)],
        })),
        empty: finished ? 'Nothing was refused.' : 'Nothing was refused so far.',
      },
    ]
    return show({
      title: file_name,
      back: { href: teamPath(team, 'contacts', 'import'), label: 'Import contacts' },
      sections,
    })
  },
}

const refused: TeamPage = {
  method: 'GET',
  path: '/teams/:team/contacts/imports/:id/refused.csv',
  access: 'editor',
  async handle(request, deps) {
    const { team, params } = request
    const { header, rows } = await refusedRecords(deps.database, team.id, params.id ?? '')
    await noteLook(request, deps, {
      action: 'contact.export',
      subject: `what the import ${params.id} refused`,
    })
    return csvFile('refused', header, rows)
  },
}

export const importPages = [form, start, progress, refused]
