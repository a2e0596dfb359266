/** Titles and pages of the kinds of objects that a search finds. Pure. */
import type { NamedThing } from '../../../db/accounts/teams/search-index.sql.ts'
import { CHANNELS } from '../../../db/channels/channels.sql.ts'
import { headed } from '../components/cell.ts'
import { type PageTeam, teamPath } from '../server/page.ts'

/** The title of each kind and the path of its pages. For `editors`, viewers get the list, not the object's page. */
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

export const describeKind = ({ kind }: NamedThing): string => KINDS[kind]?.title ?? kind

/** Returns the path of an object's page, or undefined if it has none. @param team its team, with the user's role. */
export function thingPath(
  team: { id: string } & Partial<Pick<PageTeam, 'sees'>>,
  { kind, id, name }: NamedThing,
): string | undefined {
  const { pages, by, editors } = KINDS[kind] ?? {}
  if (pages === undefined) return undefined
  if (editors && team.sees === 'viewer') return teamPath(team, pages)
  return teamPath(team, pages, by === 'name' ? name : id)
}
