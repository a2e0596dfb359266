/** Describes which rows a background job changes, until it ends and its search is deleted. */
import { namesOfThings, thingKey } from '../../../db/accounts/teams/search-index.sql.ts'
import {
  aimsOf,
  type BackgroundJobRow,
  type JobAim,
} from '../../../db/maintenance/background-jobs/background-jobs.sql.ts'
import type { Tx } from '../../../db/postgres/pool.ts'
import { isUuid } from '../../../db/validation/strings.ts'
import { readQuery } from '../../http/forms.ts'
import { headed } from '../components/cell.ts'
import { filter } from './emails-filter.ts'

/** The end of the search of a requeue that includes rejected emails. */
const REJECTED_TOO = ' including rejected emails'

type Names = ReadonlyMap<string, string>

/** Splits the stored search of emails into its filter and its end. */
function parseSearch(words: string): { set: URLSearchParams; more: string } {
  const more = words.endsWith(REJECTED_TOO.trim()) ? 'including rejected emails' : ''
  const search = more === '' ? words : words.slice(0, -more.length).trim()
  return { set: filter.set(readQuery(search)), more }
}

function describeEmails(words: string, names: Names): string {
  const { set, more } = parseSearch(words)
  const asked = filter.describe(set, { template: names, broadcast: names })
  const parts = [asked || (words === more ? 'All single emails' : words), more]
  return parts.filter(Boolean).join(', ')
}

const textOf = (value: unknown): string | null => (typeof value === 'string' ? value : null)

function describeAim({ given }: JobAim, kind: string, names: Names): string {
  const [words, endpoint] = [textOf(given.words), textOf(given.endpoint_id)]
  if (endpoint !== null) return names.has(endpoint) ? `To ${names.get(endpoint)}` : ''
  if (words === null) return ''
  return /^email\.(requeue|delete)/.test(kind) ? describeEmails(words, names) : headed(words)
}

/** The IDs in an aim, whose names replace them. */
const idsIn = ({ given }: JobAim): string[] =>
  [textOf(given.endpoint_id) ?? '', ...parseSearch(textOf(given.words) ?? '').set.values()].filter((word) =>
    isUuid(word),
  )

/** Returns the descriptions of the jobs that have one, by ID. */
export async function describeAims(
  tx: Tx,
  teamId: string,
  jobs: readonly BackgroundJobRow[],
): Promise<Names> {
  const open = new Map(
    jobs.flatMap(({ id, kind, finished_at }) => (finished_at === null ? [[id, kind]] : [])),
  )
  if (open.size === 0) return new Map()
  const aims = await aimsOf(tx, [...open.keys()])
  const ids = aims.flatMap(idsIn)
  const things = await namesOfThings(
    tx,
    ids.map((word) => ({ team_id: teamId, word })),
  )
  const names = new Map(
    ids.flatMap((id) => {
      const name = things.get(thingKey(teamId, id))?.name
      return name === undefined ? [] : [[id, name] as const]
    }),
  )
  return new Map(aims.map((aim) => [aim.id, describeAim(aim, open.get(aim.id) ?? '', names)]))
}
