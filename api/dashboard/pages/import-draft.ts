/** An uploaded file before its import: mapping its columns, checking the result, and starting the import. */

import { type TopicRow, topicsOfTeam } from '../../../db/audience/contacts/topics.sql.ts'
import {
  type Draft,
  discardImport,
  setMapping,
  showDraft,
  startDraft,
  type Trial,
  tryDraft,
} from '../../../db/audience/import/draft.ts'
import type { Becomes, Mapping, Purpose } from '../../../db/audience/import/mapping.ts'
import { beginBackgroundJob } from '../../../db/maintenance/background-jobs/background-jobs.ts'
import { plural } from '../../../db/plural.ts'
import { markOf } from '../../../db/validation/mark.ts'
import { isSlotName } from '../../../db/validation/slots.ts'
import { byteWords, text, time } from '../components/cell.ts'
import type { Actions, Alert, Link, Section, View } from '../components/section.ts'
import { auditRead } from '../server/action.ts'
import { buildAlerts, buildFacts, buildForm, button, compact, get, hidden, post } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { redirect, show, type TeamRequest, teamPath } from '../server/page.ts'
import { columnFields, mappingSent, samples, settingFields, VARIABLE_NAMES } from './import-columns.ts'
import { madeTiles, refusedTable } from './import-outcome.ts'

const REFUSALS_SHOWN = 10

const SEPARATORS: Readonly<Record<string, string>> = { ',': 'commas', ';': 'semicolons', '\t': 'tabs' }

const here = ({ team, params }: TeamRequest<'id'>, ...rest: string[]): string =>
  teamPath(team, 'contacts', 'imports', params.id, ...rest)

export const purposeOf = ({ suppress }: Mapping): Purpose => (suppress ? 'suppressions' : 'contacts')

export const uploads = (team: { id: string }, purpose: Purpose): Link => ({
  href: teamPath(team, purpose, 'import'),
  label: `Import ${purpose}`,
})

const about = ({ records }: Draft): string => plural(records, 'record')

const facts = (draft: Draft, now: Date): Section =>
  buildFacts({
    Records: text(about(draft)),
    Size: text(byteWords(draft.bytes)),
    Encoding: text(draft.encoding),
    'Separated by': text(SEPARATORS[draft.separator] ?? draft.separator),
    Uploaded: time(draft.created_at, now),
    By: text(draft.created_by),
  })

const discarding = (request: TeamRequest): Actions => ({
  forms: [button(here(request, 'discard'), 'Discard upload', { tone: 'danger' })],
})

/** Builds the stepper of an import. The upload is done. */
const importSteps = (current: 'Columns' | 'Check', request: TeamRequest<'id'>): Section => {
  const step = (label: string) => ({ label, current: label === current })
  return {
    kind: 'stepper',
    id: 'steps',
    steps: [
      { label: 'File', done: true },
      current === 'Columns' ? step('Columns') : { ...step('Columns'), done: true, href: here(request) },
      step('Check'),
      step('Import'),
    ],
  }
}

const HEADINGS = ['Column and samples', 'Import as', 'Property name']

/** Builds the page that maps the columns. @throws RequestError not_found. */
export async function draftView(request: TeamRequest<'id'>, deps: PageDeps): Promise<View> {
  const { database } = deps
  const { team, params, now } = request
  const draft = await showDraft(database, team.id, params.id)
  await auditRead(request, deps, { action: 'import.open', subject: draft.file_name })
  const topics = await topicsOfTeam(database, team.id)
  const missing = withoutTopic(draft, topics.length === 0 ? newTopic(team) : undefined)
  return {
    title: draft.file_name,
    lead: 'Choose what to do with each column. The next page shows a preview. The upload is kept for a day.',
    back: uploads(team, purposeOf(draft.mapping)),
    actions: discarding(request),
    above: [importSteps('Columns', request)],
    sections: [
      ...buildAlerts([
        missing && (topics.length === 0 ? missing : { ...missing, text: 'Choose topics below.' }),
      ]),
      buildForm(here(request), 'Continue', {
        title: 'Columns',
        pairs: draft.mapping.suppress ? undefined : HEADINGS,
        fields: [...columnFields(draft, topics), ...settingFields(draft, topics)],
      }),
      samples(draft),
    ],
    aside: [facts(draft, now)],
  }
}

const save = post('editor', '/teams/:team/contacts/imports/:id', async (request, { database }) => {
  const { team, params, form } = request
  const draft = await showDraft(database, team.id, params.id)
  await database.transaction((tx) => setMapping(tx, team.id, draft.id, mappingSent(form, draft)))
  return redirect(here(request, 'check'))
})

function describeEffect({ suppress, columns, merge }: Mapping): string {
  if (suppress) return 'stay suppressed'
  if (!columns.some(({ to }) => to === 'property' || to === 'properties')) return 'status and properties kept'
  return merge ? 'status kept, properties merged' : 'status kept, properties replaced'
}

function trialSections(draft: Draft, { tried, refusals, ...made }: Trial): Section[] {
  const first = `of the first ${tried.toLocaleString('en-US')} of ${about(draft)}`
  const of = draft.whole ? `of ${about(draft)}` : first
  return compact([
    {
      kind: 'tiles',
      tiles: [
        ...madeTiles(made, draft.mapping, { created: of, updated: describeEffect(draft.mapping) }),
        {
          label: 'Rejected',
          value: refusals.length.toLocaleString('en-US'),
          detail: of,
          tone: refusals.length > 0 ? 'bad' : 'plain',
        },
      ],
    },
    refusals.length !== 0 &&
      refusedTable(refusals.slice(0, REFUSALS_SHOWN), draft.mapping, {
        title:
          refusals.length > REFUSALS_SHOWN
            ? `The first ${REFUSALS_SHOWN} rejected records`
            : 'Rejected records',
        note: 'All other records are imported. You can download the rejected records afterwards.',
        empty: '',
      }),
  ])
}

/** Warns about properties whose names can't be variables of a template. */
function unusable({ mapping: { columns } }: Draft, path: string): Alert | false {
  const names = columns.flatMap((column) =>
    column.to === 'property' && !isSlotName(column.name) ? [`“${column.name}”`] : [],
  )
  return (
    names.length > 0 && {
      tone: 'warn',
      title: `No template can use ${names.join(', ')}`,
      text: VARIABLE_NAMES,
      link: { href: path, label: 'Change columns' },
    }
  )
}

/** Warns that broadcasts won't reach the new contacts. */
const withoutTopic = ({ mapping: { suppress, topic_ids, columns } }: Draft, link?: Link): Alert | false =>
  suppress === null &&
  topic_ids.length === 0 &&
  !columns.some(({ to }) => to === 'topic') && {
    tone: 'warn',
    title: 'No contact gets a topic',
    text: 'Broadcasts go to topics, so they won’t reach the new contacts.',
    link,
  }

const newTopic = (team: { id: string }): Link => ({ href: teamPath(team, 'topics'), label: 'Create a topic' })

function choiceFacts({ table: { header }, mapping }: Draft, topics: readonly TopicRow[]): Section {
  const named = (wanted: (column: Becomes) => boolean): string =>
    header.filter((_, at) => wanted(mapping.columns[at] ?? { to: 'ignore' })).join(', ')
  const findTopicName = (id: string): string => topics.find((topic) => topic.id === id)?.name ?? id
  const { suppress } = mapping
  const properties = mapping.columns.flatMap((column, at) => {
    if (column.to !== 'property') return []
    return [column.name === header[at] ? column.name : `${header[at]} as ${column.name}`]
  })
  const wished = mapping.columns.flatMap((column, at) =>
    column.to === 'topic' ? [`${findTopicName(column.id)} when ${header[at]} is “yes”`] : [],
  )
  return buildFacts({
    'Email address': text(named(({ to }) => to === 'email')),
    'Suppressed as': suppress && text(suppress.as),
    Reason: suppress && text(suppress.detail),
    Properties: !suppress && text(properties.join(', ')),
    Consent: mapping.columns.some(({ to }) => to === 'consent') && text(named(({ to }) => to === 'consent')),
    'Without consent': mapping.no && text(mapping.no === 'ignore' ? 'imported like the others' : mapping.no),
    'Subscribed to': !suppress && text([...mapping.topic_ids.map(findTopicName), ...wished].join(', ')),
    'Not imported': text(named(({ to }) => to === 'ignore')),
  })
}

/** Returns how much would be imported: contacts or addresses, or only records if the file is long. */
const describeImport = (draft: Draft, { created, updated }: Trial): string => {
  if (!draft.whole) return about(draft)
  return draft.mapping.suppress
    ? plural(created + updated, 'address', 'addresses')
    : plural(created + updated, 'contact')
}

const check = get('editor', '/teams/:team/contacts/imports/:id/check', async (request, deps) => {
  const { team, params, now } = request
  const { database, secrets } = deps
  const draft = await showDraft(database, team.id, params.id)
  await auditRead(request, deps, { action: 'import.open', subject: draft.file_name })
  const trial = await tryDraft({ tx: database, now, secrets }, team.id, draft)
  const topics = await topicsOfTeam(database, team.id)
  const none = draft.whole && trial.refusals.length === trial.tried
  const choose = { href: here(request), label: 'Choose topics' }
  return show({
    title: `Import ${draft.file_name}?`,
    lead: none
      ? 'Every record would be rejected.'
      : 'Nothing is imported yet. This is a preview of the result. You can’t undo an import.',
    back: { href: here(request), label: 'Columns' },
    actions: {
      forms: compact([
        !none &&
          button(here(request, 'start'), `Import ${describeImport(draft, trial)}`, {
            // A colleague can change the mapping in the meantime.
            fields: [hidden('seen', markOf(draft.mapping), true)],
          }),
        discarding(request).forms,
      ]),
    },
    above: [
      importSteps('Check', request),
      ...buildAlerts([
        unusable(draft, here(request)),
        !none && withoutTopic(draft, topics.length === 0 ? newTopic(team) : choose),
      ]),
    ],
    sections: trialSections(draft, trial),
    aside: [choiceFacts(draft, topics)],
  })
})

const start = post('editor', '/teams/:team/contacts/imports/:id/start', async (request, deps) => {
  const { team, params, person, form } = request
  const { id, file_name, mapping } = await showDraft(deps.database, team.id, params.id)
  const { suppress } = mapping
  await beginBackgroundJob(deps, {
    kind: suppress ? 'suppression.import' : 'contact.import',
    id,
    given: { import_id: id, file_name, ...(suppress ? { words: `${suppress.as}: ${suppress.detail}` } : {}) },
    team_id: team.id,
    actor: person.email,
    store: (tx) => startDraft(tx, team.id, id, form.get('seen')),
  })
  return redirect(here(request))
})

const discard = post('editor', '/teams/:team/contacts/imports/:id/discard', async (request, { database }) => {
  const { team, params } = request
  const { id, mapping } = await showDraft(database, team.id, params.id)
  await discardImport(database, team.id, id)
  return redirect(uploads(team, purposeOf(mapping)).href, 'The upload is discarded.')
}).confirm(async ({ team, params }, { database }) => ({
  question: `Discard the upload ${(await showDraft(database, team.id, params.id)).file_name}? Nothing was imported from it.`,
  answer: 'Discard upload',
  tone: 'danger',
}))

export const importDraftPages = [save, check, start, discard]
