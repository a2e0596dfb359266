/** Where the things that a team calls by a name are shown, and what their kinds are called. Pure. */
import type { NamedThing } from '../../../db/accounts/teams/search-index.sql.ts'
import { CHANNELS } from '../../../db/channels/channels.sql.ts'
import { headed } from '../components/cell.ts'
import { type PageTeam, teamPath } from '../server/page.ts'

/** What each kind is called, and its pages' first part; whose page is their editors' alone is found in its list. */
const KINDS: Readonly<Record<string, { title: string; pages: string; by?: 'name'; editors?: true }>> = {
  ...Object.fromEntries(
    CHANNELS.flatMap(({ name, noun, title, path }) => [
      [name, { title: headed(noun), pages: path }],
      [`${name}-template`, { title: `${title} template`, pages: `${path}-templates` }],
    ]),
  ),
  contact: { title: 'Contact', pages: 'contacts', by: 'name' },
  broadcast: { title: 'Broadcast', pages: 'broadcasts' },
  template: { title: 'Template', pages: 'templates' },
  topic: { title: 'Topic', pages: 'topics', editors: true },
  domain: { title: 'Domain', pages: 'domains', by: 'name' },
  webhook: { title: 'Webhook', pages: 'webhooks' },
}

export const kindOf = ({ kind }: NamedThing): string => KINDS[kind]?.title ?? kind

/** The page of a thing; undefined where it has none. @param team whose it is, and as whom it is seen. */
export function thingPath(
  team: { id: string } & Partial<Pick<PageTeam, 'sees'>>,
  { kind, id, name }: NamedThing,
): string | undefined {
  const { pages, by, editors } = KINDS[kind] ?? {}
  if (pages === undefined) return undefined
  if (editors && team.sees === 'viewer') return teamPath(team, pages)
  return teamPath(team, pages, by === 'name' ? name : id)
}
