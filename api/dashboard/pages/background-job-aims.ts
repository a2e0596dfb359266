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
import { compact } from '../server/builders.ts'
import { filter } from './emails-filter.ts'

type Names = ReadonlyMap<string, string>

function describeEmails(query: string, force: boolean, names: Names): string {
  const asked = filter.describe(filter.set(readQuery(query)), { template: names, broadcast: names })
  return compact([
    asked ? `Emails (${asked})` : 'All single emails',
    force && 'including rejected emails',
  ]).join(', ')
}

/** Describes a job by its search. Jobs of the CLI and of older versions have no query, only `words`. */
function describeAim({ given: { query, force, words, endpoint_id } }: JobAim, names: Names): string {
  if (endpoint_id !== undefined) return names.has(endpoint_id) ? `To ${names.get(endpoint_id)}` : ''
  return query === undefined ? headed(words ?? '') : describeEmails(query, force === true, names)
}

/** The IDs in an aim, whose names replace them. */
const idsIn = ({ given: { query, endpoint_id } }: JobAim): string[] =>
  [endpoint_id ?? '', ...filter.set(readQuery(query ?? '')).values()].filter((word) => isUuid(word))

/** Returns the descriptions of the jobs that have one, by ID. */
export async function describeAims(
  tx: Tx,
  teamId: string,
  jobs: readonly BackgroundJobRow[],
): Promise<Names> {
  const open = jobs.filter(({ finished_at }) => finished_at === null)
  if (open.length === 0) return new Map()
  const aims = await aimsOf(
    tx,
    open.map(({ id }) => id),
  )
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
  return new Map(aims.map((aim) => [aim.id, describeAim(aim, names)]))
}
