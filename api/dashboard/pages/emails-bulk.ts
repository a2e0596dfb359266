/** Bulk actions on all emails that match a filter. They are counted and confirmed, then requeued or deleted. */

import { EMAIL } from '../../../db/channels/email.sql.ts'
import { RequestError } from '../../../db/errors.ts'
import { beginBackgroundJob } from '../../../db/maintenance/background-jobs/background-jobs.ts'
import type { BroadcastRow } from '../../../db/messages/broadcasts/broadcasts.sql.ts'
import { hasAllEmails } from '../../../db/messages/broadcasts/view.ts'
import { bouncesOfBroadcast } from '../../../db/messages/emails/bounces.sql.ts'
import {
  type Between,
  type Counted as CountedEmails,
  countEmails,
  countRequeueable,
  matchingEmails,
} from '../../../db/messages/emails/bulk.ts'
import { storedTimes } from '../../../db/messages/stored-times.ts'
import { plural } from '../../../db/plural.ts'
import { bounceTable, MAX_BOUNCES } from '../components/bounces.ts'
import { headed } from '../components/cell.ts'
import type { Field, Form, Section, SectionOf, Tile, View } from '../components/section.ts'
import { parseZone } from '../components/zone.ts'
import { buildTable, button, compact, field, get, hidden, post } from '../server/builders.ts'
import { type Counted, countedFields, readCounted } from '../server/confirmed-count.ts'
import type { PageDeps } from '../server/deps.ts'
import { idParam } from '../server/list.ts'
import { show, type TeamRequest, teamPath } from '../server/page.ts'
import { TEXTS } from '../texts.ts'
import { backgroundJobAnswer, findJobTexts } from './background-job.ts'
import { BEFORE, emptyBulk, isWhole, limitsOfSearch, readBefore, upTo } from './emails-bulk-empty.ts'
import {
  FAILED_STATUS,
  filter,
  findBroadcast,
  listAddress,
  namesOfTemplates,
  parseEmailFilter,
  readSearch,
  withinBroadcast,
} from './emails-filter.ts'
import { FORCE, pauseWords } from './requeue.ts'
import {
  describeRequeued,
  noneToSend,
  type Requeueable,
  requeueableFields,
  requeueableWords,
  unsentNoun,
} from './requeueable.ts'

/** Maximum number of emails per action. */
const MAX_CHANGED = 10_000

type Verb = 'requeue' | 'delete'

/** The scope of a bulk action: the number of emails, the range of IDs, and the snapshot of the count. */
type Bulk = Counted & { newest: boolean; between: Between }

/**
 * Builds a button for all matching emails, with the filter and the count. The filter is also in the URL, so
 * that a question or an error leads back to the same filter and not to all emails.
 */
function bulkForm(
  { team, query }: TeamRequest,
  { between, most, seen, newest }: Bulk,
  verb: Verb,
  { submit, fields, ...more }: Pick<Form, 'submit'> & Partial<Form>,
): Form {
  const set = filter.set(query)
  return button(listAddress({ team, query: set }, 'all', verb), submit, {
    ...more,
    fields: compact([
      [...set, ...Object.entries(between)].map(([name, value]) => hidden(name, value)),
      countedFields({ most, seen }),
      newest && hidden('newest_only', 'yes'),
      fields,
    ]),
  })
}

/** Says why none can be sent again. Empty if some can. */
function whyNone({ waiting, rejected, suppressed, isAll }: Requeueable): string {
  if (!isAll || waiting + rejected > 0) return ''
  const cause =
    suppressed > 0
      ? `${headed(plural(suppressed, 'email'))} would go only to suppressed addresses.`
      : 'They were already accepted by a provider, are scheduled, or have expired.'
  return `None of them can be sent again. ${cause}`
}

/** Builds the form that sends them again. */
function requeueing(request: TeamRequest, bulk: Bulk, counts: Requeueable): Section {
  const { waiting, rejected, isAll } = counts
  const title = 'Send again'
  const form = (submit: string, note: string, which: Field | false): Section => {
    const fields = compact([requeueableFields(counts), which])
    return { kind: 'form', title, note, ...bulkForm(request, bulk, 'requeue', { submit, fields }) }
  }
  if (isAll && waiting === 0)
    return form(
      `Send ${plural(rejected, 'rejected email')} again`,
      'No server has accepted these emails. Send them again once the cause is fixed. Otherwise they bounce again.',
      hidden('force', FORCE),
    )
  const waits = requeueableWords(waiting, counts, [unsentNoun(request.query)])
  const note = isAll
    ? 'Scheduled emails, expired emails, and emails that a provider has accepted aren’t sent again.'
    : 'The count timed out, so there may be more.'
  if (rejected === 0 && isAll) return form(`Send ${waits} again`, note, false)
  const others = `and ${requeueableWords(rejected, counts, ['email'])} rejected by a server`
  const options = [
    { value: '', label: headed(waits), selected: true },
    { value: FORCE, label: `${headed(waits)}, ${others}` },
  ]
  return form('Send again', note, field('force', 'Which ones', { type: 'radios', options }))
}

/** Shows which of the emails can be sent again. Counts of 0 are left out, except that of the status in the filter. */
function sendableTiles(
  { query }: TeamRequest,
  { most }: Bulk,
  { waiting, rejected, suppressed, isAll }: Requeueable,
): SectionOf<'tiles'> {
  const tile = (label: string, count: number, detail: string): Tile => ({
    label,
    value: `${isAll ? '' : 'at least '}${count.toLocaleString('en-US')}`,
    detail,
  })
  const others = most - waiting - rejected - suppressed
  const status = query.get('status')
  const isUnsent = status === FAILED_STATUS || status === 'queued'
  return {
    kind: 'tiles',
    tiles: compact([
      (waiting > 0 || isUnsent) &&
        tile(status === FAILED_STATUS ? 'Failed' : 'Waiting', waiting, 'can be sent again'),
      rejected > 0 && tile('Rejected by a server', rejected, 'bounced at once, can be sent again'),
      suppressed > 0 && tile('To suppressed addresses', suppressed, 'left out'),
      isAll && others > 0 && tile('Accepted, scheduled or expired', others, 'left out'),
    ]),
  }
}

const HOW_MANY = MAX_CHANGED.toLocaleString('en-US')

/** @param newest true if more emails match than one action changes. */
const describeMany = (count: number, newest: boolean): string =>
  newest ? `the newest ${HOW_MANY} emails` : plural(count, 'email')

const DELETED = 'With their timelines. You can’t undo this.'

/** @param isOnly true if nothing else can be done, so it isn't in the menu. */
const deletion = (request: TeamRequest, bulk: Bulk, isOnly: boolean): Form =>
  bulkForm(request, bulk, 'delete', {
    menu: isOnly ? false : undefined,
    submit: `Delete ${describeMany(bulk.most, bulk.newest)}`,
    tone: 'danger',
    about: DELETED,
  })

const deletes = ({ team }: TeamRequest): boolean => team.role === 'owner'

function countWords({ count, lookedTo }: CountedEmails): string {
  if (count > MAX_CHANGED) return `more than ${HOW_MANY} emails`
  return lookedTo === null ? plural(count, 'email') : `at least ${plural(count, 'email')}`
}

/** Builds the head of the page with the filter of the emails. @param none why none can be sent again, or ''. */
async function buildHead(
  request: TeamRequest,
  deps: PageDeps,
  counted: CountedEmails,
  { broadcast, none }: { broadcast: BroadcastRow | null; none: string },
): Promise<Pick<View, 'title' | 'lead' | 'back'>> {
  const { team, query } = request
  const own = filter.set(query)
  if (broadcast) own.delete('broadcast')
  const asked = filter.describe(own, { template: await namesOfTemplates(request, deps) })
  const which = asked || (broadcast ? '' : 'No filter is set. These are all single emails of the team')
  // Those of a broadcast have been deleted, and an incomplete search may have missed some.
  const isNone = counted.count === 0 && (counted.lookedTo !== null || which === '')
  const only = none !== '' && deletes(request) && 'You can only delete them.'
  const later = counted.count > 0 && none === '' && 'Emails that match later aren’t included.'
  return {
    title: `Bulk actions on ${isNone ? 'emails' : countWords(counted)}`,
    lead: compact([none, only, which && `${which}.`, later]).join(' ') || undefined,
    back: broadcast
      ? { href: teamPath(team, 'broadcasts', broadcast.id), label: broadcast.name }
      : { href: listAddress(request), label: 'Emails' },
  }
}

/** Counts the matching emails of a request before the end of a previous search. */
async function countMeant(request: TeamRequest, deps: PageDeps, broadcast: BroadcastRow | null) {
  const { database } = deps
  const { since, now, ...meant } = readSearch(request)
  const { team_id, ...within } = withinBroadcast(upTo(meant, readBefore(request)), broadcast)
  const wanted = { filter: within, most: MAX_CHANGED + 1 }
  const counted = await countEmails({ tx: database, now, since }, team_id, wanted)
  const isAll = broadcast && isWhole(request) && (await hasAllEmails(database, broadcast, counted.count))
  return isAll ? { ...counted, lookedTo: null } : counted
}

const all = get('editor', '/teams/:team/emails/all', async (request, deps) => {
  const { database } = deps
  filter.only(request.query, BEFORE)
  const { team_id, since: _, now: __, ...meant } = readSearch(request)
  const broadcast = await findBroadcast({ ...meant, team_id }, deps)
  const counted = await countMeant(request, deps, broadcast)
  const { count, between, lookedTo, seen } = counted
  const newest = count > MAX_CHANGED
  const bulk = between && { most: Math.min(count, MAX_CHANGED), seen, newest, between }
  const counts =
    bulk && (await countRequeueable({ ...deps, tx: database }, team_id, { filter: meant, between }))
  const none = counts ? whyNone(counts) : ''
  const tiles = bulk && counts && sendableTiles(request, bulk, counts)
  return show({
    ...(await buildHead(request, deps, counted, { broadcast, none })),
    actions: {
      links: compact([none !== '' && { href: listAddress(request), label: 'Show the emails' }]),
      forms: compact([bulk && deletes(request) && deletion(request, bulk, none !== '')]),
    },
    sections: compact<Section>([
      bulk && limitsOfSearch(request, lookedTo),
      bulk && counts && tiles
        ? [
            // A single count is that of the title.
            !(none && tiles.tiles.length === 1) && tiles,
            broadcast &&
              counts.rejected > 0 &&
              bounceTable(await bouncesOfBroadcast(database, broadcast, { most: MAX_BOUNCES })),
            none === '' && requeueing(request, bulk, counts),
          ].flatMap((section) => section || [])
        : buildTable([], () => ({}), await emptyBulk(request, deps, { broadcast, lookedTo })),
    ]),
  })
})

/** Reads which emails the page counted. @throws RequestError bad_request. */
function readMatching({ form, cookies }: Pick<TeamRequest, 'form' | 'cookies'>) {
  const { most, seen } = readCounted(form)
  const filter = parseEmailFilter(form, parseZone(cookies('zone')))
  const [newest, oldest] = [idParam(form, 'newest'), idParam(form, 'oldest')]
  if (newest === undefined || oldest === undefined) throw new RequestError('bad_request', TEXTS.formOutOfDate)
  return { filter, between: { newest, oldest }, most: Math.min(most, MAX_CHANGED), seen }
}

/** @throws RequestError invalid_state if none of the counted emails is left to change. */
async function assertLeft(verb: Verb, request: TeamRequest, deps: PageDeps): Promise<void> {
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

const bulk = (verb: Verb) =>
  post(verb === 'delete' ? 'owner' : 'editor', `/teams/:team/emails/all/${verb}`, async (request, deps) => {
    const { team, form, person } = request
    const force = form.get('force') === FORCE
    const query = filter.set(form).toString()
    const search = decodeURIComponent(query)
    const words = force ? `${search} including rejected emails`.trim() : search
    const read = readMatching(request)
    const matching = { ...read, filter: storedTimes(read.filter) }
    const given = { ...matching, force, words, query }
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
      ? {
          question: `Delete ${many} permanently?`,
          answer: `Delete ${many}`,
          tone: 'danger',
          warning: DELETED,
        }
      : {
          question: `Send ${describeRequeued(form)} again?`,
          answer: 'Send again',
          warning: 'Emails already accepted by a provider aren’t sent again.',
        }
  })

export const emailsBulkPages = [all, bulk('requeue'), bulk('delete')]
