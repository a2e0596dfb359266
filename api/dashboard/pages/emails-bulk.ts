/**
 * Bulk actions on emails that match a filter, or that are selected in the list. They are counted and confirmed, then
 * requeued or deleted.
 */

import { EMAIL } from '../../../db/channels/email.sql.ts'
import { RequestError } from '../../../db/errors.ts'
import { beginBackgroundJob } from '../../../db/maintenance/background-jobs/background-jobs.ts'
import { broadcastById } from '../../../db/messages/broadcasts/broadcasts.sql.ts'
import { broadcastView } from '../../../db/messages/broadcasts/view.ts'
import {
  type Between,
  type Counted as CountedEmails,
  countChosen,
  countEmails,
  countRequeueable,
  deleteChosen,
  isStored,
  matchingEmails,
  requeueChosen,
} from '../../../db/messages/emails/bulk.ts'
import { storedTimes } from '../../../db/messages/stored-times.ts'
import { plural } from '../../../db/plural.ts'
import { isUuid } from '../../../db/validation/strings.ts'
import { headed } from '../components/cell.ts'
import type { Form, Section, Tile } from '../components/section.ts'
import { momentWords, parseZone } from '../components/zone.ts'
import { asActor } from '../server/action.ts'
import { action, buildTable, button, compact, field, get, hidden, post } from '../server/builders.ts'
import { type Counted, countedFields, readCounted } from '../server/confirmed-count.ts'
import type { PageDeps } from '../server/deps.ts'
import { addressWith, idParam } from '../server/list.ts'
import { redirect, show, type TeamPage, type TeamRequest, teamPath } from '../server/page.ts'
import { TEXTS } from '../texts.ts'
import { backgroundJobAnswer, findJobTexts } from './background-job.ts'
import { FAILED_STATUS, filter, namesOfTemplates, parseEmailFilter, readSearch } from './emails-filter.ts'
import { FORCE, pauseWords } from './requeue.ts'
import {
  describeRequeued,
  type Requeueable,
  requeueableFields,
  requeueableWords,
  unsentNoun,
} from './requeueable.ts'

/** Maximum number of emails per action. */
const MAX_CHANGED = 10_000
/** Maximum number of selected rows. */
const MAX_CHOSEN = 50

/** The scope of a bulk action: the number of emails, the range of IDs, and the snapshot of the count. */
type BulkForm = Counted & { many: string; newest: boolean; between: Between }

/**
 * Builds a button for all matching emails, with the filter and the count. The filter is also in the URL, so
 * that a question or an error leads back to the same filter and not to all emails.
 */
const bulkForm = (
  { team, query }: TeamRequest,
  { between, most, seen, newest }: BulkForm,
  verb: 'requeue' | 'delete',
  form: Pick<Form, 'submit'> & Partial<Form>,
): Form =>
  button(
    addressWith({ path: teamPath(team, 'emails', 'all', verb), query: filter.set(query) }, {}),
    form.submit,
    {
      ...form,
      fields: compact([
        [...filter.set(query), ...Object.entries(between)].map(([name, value]) => hidden(name, value)),
        countedFields({ most, seen }),
        newest && hidden('newest_only', 'yes'),
      ]),
    },
  )

/** Builds the form that sends them again, or says why none can be sent. */
function requeueing(request: TeamRequest, bulk: BulkForm, counts: Requeueable): Section {
  const { waiting, rejected, suppressed, isAll } = counts
  const title = 'Send again'
  if (isAll && waiting + rejected === 0)
    return {
      kind: 'text',
      title,
      paragraphs: [
        suppressed > 0
          ? `None of them can be sent again. ${headed(plural(suppressed, 'email'))} would go only to suppressed addresses.`
          : 'None of them can be sent again. They were already accepted by a provider, are scheduled, or have expired.',
      ],
    }
  if (isAll && waiting === 0) {
    const form = bulkForm(request, bulk, 'requeue', {
      submit: `Send ${plural(rejected, 'rejected email')} again`,
    })
    const note =
      'None of them is still waiting. No provider has accepted the rejected ones, so they can be sent again.'
    return {
      kind: 'form',
      title,
      note,
      ...form,
      fields: [...form.fields, ...requeueableFields(counts), hidden('force', FORCE)],
    }
  }
  const waits = requeueableWords(waiting, counts, [unsentNoun(request.query)])
  const isOne = rejected === 0 && isAll
  const form = bulkForm(request, bulk, 'requeue', { submit: isOne ? `Send ${waits} again` : 'Send again' })
  const others = `and ${requeueableWords(rejected, counts, ['email'])} rejected by a server`
  const which = field('force', 'Which ones', {
    type: 'radios',
    options: [
      { value: '', label: headed(waits), selected: true },
      { value: FORCE, label: `${headed(waits)}, ${others}` },
    ],
  })
  return {
    kind: 'form',
    title,
    note: isAll
      ? 'Scheduled emails, expired emails, and emails that a provider has accepted aren’t sent again.'
      : 'The count timed out, so there may be more.',
    ...form,
    fields: compact([form.fields, requeueableFields(counts), !isOne && which]),
  }
}

const deletion = (request: TeamRequest, bulk: BulkForm): Form =>
  bulkForm(request, bulk, 'delete', {
    submit: `Delete ${bulk.many}`,
    tone: 'danger',
    about: 'With their timelines. You can’t undo this.',
  })

/** Shows which of the emails can be sent again. */
function sendableTiles(
  { query }: TeamRequest,
  { most }: BulkForm,
  { waiting, rejected, suppressed, isAll }: Requeueable,
): Section {
  const tile = (label: string, count: number, detail: string): Tile => ({
    label,
    value: `${isAll ? '' : 'at least '}${count.toLocaleString('en-US')}`,
    detail,
  })
  const others = most - waiting - rejected - suppressed
  return {
    kind: 'tiles',
    tiles: compact([
      tile(query.get('status') === FAILED_STATUS ? 'Failed' : 'Waiting', waiting, 'can be sent again'),
      tile('Rejected by a server', rejected, 'can be sent again'),
      tile('To suppressed addresses', suppressed, 'left out'),
      isAll && tile('Others', others, 'left out: accepted, scheduled or expired'),
    ]),
  }
}

const HOW_MANY = MAX_CHANGED.toLocaleString('en-US')

/** @param newest true if more emails match than one action changes. */
const describeMany = (count: number, newest: boolean): string =>
  newest ? `the newest ${HOW_MANY} emails` : plural(count, 'email')

function countWords({ count, lookedTo }: CountedEmails): string {
  if (count > MAX_CHANGED) return `more than ${HOW_MANY} emails`
  return lookedTo === null ? plural(count, 'email') : `at least ${plural(count, 'email')}`
}

/** Builds the head of the page with the filter of the emails, or the name of their broadcast. */
async function headOf(
  request: TeamRequest,
  deps: PageDeps,
  { broadcast_id, ...counted }: CountedEmails & { broadcast_id: string | undefined },
) {
  const { team, query } = request
  const broadcast = broadcast_id && (await broadcastById(deps.database, team.id, broadcast_id))
  const own = filter.set(query)
  if (broadcast) own.delete('broadcast')
  const asked = filter.describe(own, { template: await namesOfTemplates(request, deps) })
  const many = countWords(counted)
  const later = counted.count === 0 ? '' : ' Emails that start to match later aren’t affected.'
  if (broadcast) {
    const back = { href: teamPath(team, 'broadcasts', broadcast.id), label: broadcast.name }
    return {
      title: `Bulk actions: emails of “${broadcast.name}”`,
      lead: counted.count === 0 && !asked ? undefined : `${compact([many, asked]).join(', ')}.${later}`,
      back,
    }
  }
  return {
    title: `Bulk actions: ${many}`,
    lead: `${asked || 'No filter is set. These are all single emails of the team'}.${later}`,
    back: { href: addressWith({ ...request, path: teamPath(team, 'emails') }, {}), label: 'Emails' },
  }
}

/** Describes an empty result. Retention deletes old emails, and their broadcast keeps the stats. */
async function describeNone({ team, query }: TeamRequest, { database }: PageDeps): Promise<string> {
  const own = filter.set(query)
  const id = own.get('broadcast')
  const row = own.size === 1 && id !== null && (await broadcastById(database, team.id, id))
  return row && (await broadcastView(database, row)).stats.made > 0
    ? 'These emails have been deleted. Their counts are kept.'
    : 'No emails match, so there is nothing to do.'
}

const all = get('editor', '/teams/:team/emails/all', async (request, deps) => {
  const { team, query } = request
  filter.only(query)
  const { team_id, since, now, ...meant } = readSearch(request)
  const counted = await countEmails({ tx: deps.database, now, since }, team_id, {
    filter: meant,
    most: MAX_CHANGED + 1,
  })
  const { count, between, lookedTo, seen } = counted
  const bulk = between && {
    most: Math.min(count, MAX_CHANGED),
    seen,
    newest: count > MAX_CHANGED,
    many: describeMany(count, count > MAX_CHANGED),
    between,
  }
  const counts =
    bulk && (await countRequeueable({ ...deps, tx: deps.database }, team_id, { filter: meant, ...bulk }))
  const limits = compact([
    lookedTo !== null &&
      `There are many emails. Those before ${momentWords(lookedTo.toISOString(), parseZone(request.cookies('zone')))} weren’t searched.`,
  ])
  return show({
    ...(await headOf(request, deps, { ...counted, broadcast_id: meant.broadcast_id })),
    actions: { forms: compact([bulk && team.role === 'owner' && deletion(request, bulk)]) },
    sections: compact([
      limits.length > 0 && { kind: 'text', paragraphs: limits },
      !bulk && buildTable([], () => ({}), { empty: await describeNone(request, deps) }),
      bulk && counts && [sendableTiles(request, bulk, counts), requeueing(request, bulk, counts)],
    ]),
  })
})

/** Reads the range of IDs that the page counted. @throws RequestError bad_request if it is missing. */
function readRange(form: URLSearchParams): Between {
  const newest = idParam(form, 'newest')
  const oldest = idParam(form, 'oldest')
  if (newest !== undefined && oldest !== undefined) return { newest, oldest }
  throw new RequestError('bad_request', TEXTS.formOutOfDate)
}

/** Reads which emails the page counted. @throws RequestError bad_request. */
function readMatching({ form, cookies }: Pick<TeamRequest, 'form' | 'cookies'>) {
  const counted = readCounted(form)
  const filter = parseEmailFilter(form, parseZone(cookies('zone')))
  return { filter, between: readRange(form), ...counted, most: Math.min(counted.most, MAX_CHANGED) }
}

const noneToSend = (suppressed: number): RequestError =>
  new RequestError('invalid_state', suppressed > 0 ? TEXTS.allSuppressed : TEXTS.noneToSend)

/** @throws RequestError invalid_state if none of the counted emails is left to change. */
async function assertLeft(verb: 'requeue' | 'delete', request: TeamRequest, deps: PageDeps): Promise<void> {
  const { team, form } = request
  const { filter, ...matching } = readMatching(request)
  const tx = deps.database
  if (verb === 'delete') {
    const wanted = { ...matching, filter: storedTimes(filter) }
    const { ids, cursor } = await matchingEmails(tx, team.id, wanted, { before: undefined, done: 0 })
    if (ids.length === 0 && cursor === null) throw new RequestError('invalid_state', TEXTS.noneToDelete)
    return
  }
  const counts = await countRequeueable({ ...deps, tx }, team.id, { filter, ...matching })
  const left = counts.waiting + (form.get('force') === FORCE ? counts.rejected : 0)
  if (left === 0 && counts.isAll) throw noneToSend(counts.suppressed)
}

const bulk = (verb: 'requeue' | 'delete'): TeamPage =>
  post(verb === 'delete' ? 'owner' : 'editor', `/teams/:team/emails/all/${verb}`, async (request, deps) => {
    const { team, form, person } = request
    const force = form.get('force') === FORCE
    const search = decodeURIComponent(filter.set(form).toString())
    const words = force ? `${search} including rejected emails`.trim() : search
    const read = readMatching(request)
    const matching = { ...read, filter: storedTimes(read.filter) }
    const given = { ...matching, force, words }
    const wanted = { given, total: matching.most, team_id: team.id, actor: person.email }
    const { in_broadcast, failed } = matching.filter
    const isKnown = in_broadcast === undefined && failed === undefined
    const kind = isKnown ? verb : (`${verb}_apart` as const)
    const job = await beginBackgroundJob(deps, { kind: `email.${kind}`, ...wanted })
    const said = findJobTexts(job).outcome(job.result)
    const paused =
      verb === 'requeue' && Number(job.result.changed) > 0
        ? await pauseWords(deps, EMAIL, { team, person })
        : ''
    return backgroundJobAnswer(job, `${teamPath(team, 'emails')}?${filter.set(form)}`, said + paused)
  }).confirm(async (request, deps) => {
    const { form } = request
    await assertLeft(verb, request, deps)
    const many = describeMany(readCounted(form).most, form.get('newest_only') === 'yes')
    return verb === 'delete'
      ? { question: `Delete ${many} permanently?`, answer: `Delete ${many}`, tone: 'danger' }
      : {
          question: `Send ${describeRequeued(form)} again?`,
          answer: 'Send again',
          warning: 'Emails already accepted by a provider aren’t sent again.',
        }
  })

/** Names the selected emails that aren't sent again. */
const leftOut = (count: number, cause: string): string =>
  `${plural(count, 'email')} can’t be sent again: ${cause}.`

/** Returns the selected emails. @throws RequestError bad_request if there are none. */
function readSelection(form: URLSearchParams): string[] {
  const ids = form.getAll('ids').filter((id) => isUuid(id))
  if (ids.length === 0) throw new RequestError('bad_request', TEXTS.nothingChosen)
  return ids.slice(0, MAX_CHOSEN)
}

const listAddress = ({ team, query }: TeamRequest): string =>
  addressWith({ path: teamPath(team, 'emails'), query }, {})

const sendChosen = post('editor', '/teams/:team/emails/requeue', async (request, deps) => {
  const ids = readSelection(request.form)
  const changed = await asActor(request, deps, (by) =>
    requeueChosen({ ...deps, ...by }, request.team.id, ids),
  )
  const left = ids.length - changed
  const others = left > 0 ? ` ${plural(left, 'other')} can’t be sent again.` : ''
  const paused = changed > 0 ? await pauseWords(deps, EMAIL, request) : ''
  return redirect(
    listAddress(request),
    `${plural(changed, 'email')} queued to be sent again.${others}${paused}`,
  )
}).confirm(async ({ team, form }, deps) => {
  const ids = readSelection(form)
  const { open, suppressed } = await countChosen({ ...deps, tx: deps.database }, team.id, ids)
  if (open === 0) throw noneToSend(suppressed)
  const many = plural(open, 'email')
  const others = ids.length - open - suppressed
  return {
    question: `Send ${many} again?`,
    answer: `Send ${many} again`,
    warning: compact([
      suppressed > 0 && leftOut(suppressed, 'all recipients are suppressed'),
      others > 0 && leftOut(others, 'accepted by a provider, scheduled or expired'),
    ]).join(' '),
  }
})

const removeChosen = action('owner', '/teams/:team/emails/delete', async (by, request) => {
  const deleted = await deleteChosen(by, request.team.id, readSelection(request.form))
  return redirect(listAddress(request), `${plural(deleted, 'email')} deleted.`)
}).confirm(async ({ team, form }, { database }) => {
  const ids = readSelection(form)
  if (!(await isStored(database, team.id, ids))) throw new RequestError('invalid_state', TEXTS.noneToDelete)
  const many = plural(ids.length, 'email')
  return { question: `Delete ${many} permanently?`, answer: `Delete ${many}`, tone: 'danger' }
})

/** Returns the actions on selected emails. */
export function bulkActions(request: TeamRequest): Form[] | undefined {
  const { team, query } = request
  if (team.role === 'viewer') return undefined
  const to = (verb: string): string => addressWith({ path: teamPath(team, 'emails', verb), query }, {})
  return compact([
    button(to('requeue'), 'Send again', { tone: 'quiet' }),
    team.role === 'owner' && button(to('delete'), 'Delete emails', { tone: 'danger' }),
  ])
}

export const emailsBulkPages = [all, bulk('requeue'), bulk('delete'), sendChosen, removeChosen]
