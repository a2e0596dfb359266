/** The people behind a broadcast's figures, as lists and as CSV: who got it and how it ended, who got none and why. */

import { EMAIL_LADDER } from '../../../db/channels/email.ts'
import { broadcastOrRefusal } from '../../../db/messages/broadcasts/draft.ts'
import {
  type Reached,
  reachedBy,
  type Skipped,
  skippedBy,
} from '../../../db/messages/broadcasts/people.sql.ts'
import { status, text, time } from '../drawn/cell.ts'
import type { Link, Section } from '../drawn/section.ts'
import { noteLook } from '../served/act.ts'
import { wordChips } from '../served/chips.ts'
import { csvFile, rowsBy } from '../served/csv.ts'
import type { PageDeps } from '../served/deps.ts'
import { addressWith, idGiven, PAGE_SIZE, wordGiven } from '../served/list.ts'
import { get, lagging, tableOf } from '../served/made.ts'
import { show, type TeamRequest, teamPath } from '../served/page.ts'

const here = ({ team, params }: TeamRequest, ...rest: string[]): string =>
  teamPath(team, 'broadcasts', params.id ?? '', ...rest)

const placeOf = ({ team, params }: TeamRequest) => ({ team_id: team.id, broadcast_id: params.id ?? '' })

/** The rows to show, and the link to those that follow. */
function pageBy<R extends { contact_id: string }>(request: TeamRequest, rows: readonly R[]) {
  const shown = rows.slice(0, PAGE_SIZE)
  const last = shown.at(-1)
  const next: Link | null =
    rows.length > PAGE_SIZE && last
      ? { href: addressWith(request, { after: last.contact_id }), label: 'Next' }
      : null
  return { shown, next }
}

const pageAsked = ({ query }: TeamRequest) => ({ after: idGiven(query, 'after'), limit: PAGE_SIZE + 1 })

function reachedSection(request: TeamRequest, rows: readonly Reached[]): Section {
  const { team, now } = request
  const { shown, next } = pageBy(request, rows)
  return tableOf(
    shown,
    ({ id, email, status: word, detail, created_at }) => ({
      Status: status(word),
      Address: text(email, { href: teamPath(team, 'contacts', email) }),
      'Said last': text(detail),
      Made: time(created_at, now),
      '': text('The email', { href: teamPath(team, 'emails', id) }),
    }),
    {
      next: next ? [next] : [],
      empty: 'Nobody.',
    },
  )
}

const reached = get(
  lagging('viewer'),
  '/teams/:team/broadcasts/:id/people',
  async (request, { database }) => {
    const { team, params, query } = request
    const { name } = await broadcastOrRefusal(database, team.id, params.id ?? '')
    const word = wordGiven(query, 'status', EMAIL_LADDER)
    const rows = await reachedBy(database, placeOf(request), word, pageAsked(request))
    const search = new URLSearchParams({ ...(word ? { status: word } : {}) })
    return show({
      title: word ? `${name}: ${word}` : `${name}: everybody`,
      back: { href: here(request), label: name },
      actions: {
        kind: 'actions',
        links: [{ href: `${here(request, 'people.csv')}?${search}`, label: 'CSV' }],
      },
      sections: [
        { kind: 'chips', chips: wordChips(request, 'status', EMAIL_LADDER) },
        reachedSection(request, rows),
      ],
    })
  },
)

const skipped = get(lagging('viewer'), '/teams/:team/broadcasts/:id/skips', async (request, { database }) => {
  const { team, params, now } = request
  const { name } = await broadcastOrRefusal(database, team.id, params.id ?? '')
  const { shown, next } = pageBy(request, await skippedBy(database, placeOf(request), pageAsked(request)))
  return show({
    title: `${name}: skipped`,
    lead: 'Who was picked and got nothing, and why.',
    back: { href: here(request), label: name },
    actions: { kind: 'actions', links: [{ href: here(request, 'skips.csv'), label: 'CSV' }] },
    sections: [
      tableOf(
        shown,
        ({ email, reason, detail, at }: Skipped) => ({
          Address: text(email, { href: teamPath(team, 'contacts', email) }),
          Why: text(SKIP_WORDS[reason] ?? reason, { detail }),
          When: time(at, now),
        }),
        {
          next: next ? [next] : [],
          empty: 'Nobody was skipped.',
        },
      ),
    ],
  })
})

const SKIP_WORDS: Readonly<Record<string, string>> = {
  variables: 'a variable had no value',
  unsubscribed: 'unsubscribed',
  suppressed: 'suppressed',
  left_topic: 'left the topic',
  deleted: 'the contact was deleted',
  cancelled: 'the broadcast was cancelled',
}

const contactOf = ({ contact_id }: { contact_id: string }): string => contact_id

async function* reachedLines(request: TeamRequest, { database }: PageDeps) {
  const word = wordGiven(request.query, 'status', EMAIL_LADDER)
  const read = async (after: string | undefined, limit: number) => ({
    rows: await reachedBy(database, placeOf(request), word, { after, limit }),
  })
  for await (const { email, status: said, detail, created_at, id, contact_id } of rowsBy(read, contactOf))
    yield [email, said, detail, created_at, id, contact_id]
}

async function* skippedLines(request: TeamRequest, { database }: PageDeps) {
  const read = async (after: string | undefined, limit: number) => ({
    rows: await skippedBy(database, placeOf(request), { after, limit }),
  })
  for await (const { email, reason, detail, at, contact_id } of rowsBy(read, contactOf))
    yield [email, reason, detail, at, contact_id]
}

const reachedCsv = get(lagging('viewer'), '/teams/:team/broadcasts/:id/people.csv', async (request, deps) => {
  const { team, params } = request
  const { id } = await broadcastOrRefusal(deps.database, team.id, params.id ?? '')
  const header = ['email', 'status', 'detail', 'made', 'email_id', 'contact_id']
  const file = await csvFile('broadcast-people', header, reachedLines(request, deps))
  await noteLook(request, deps, { action: 'broadcast.export', subject: id })
  return file
})

const skippedCsv = get(lagging('viewer'), '/teams/:team/broadcasts/:id/skips.csv', async (request, deps) => {
  const { team, params } = request
  const { id } = await broadcastOrRefusal(deps.database, team.id, params.id ?? '')
  const header = ['email', 'reason', 'detail', 'at', 'contact_id']
  const file = await csvFile('broadcast-skips', header, skippedLines(request, deps))
  await noteLook(request, deps, { action: 'broadcast.export', subject: id })
  return file
})

export const broadcastPeoplePages = [reached, skipped, reachedCsv, skippedCsv]
