/**
 * Who may open which page, for every page there is: made from the list of pages, so that a new one cannot be left
 * out.
 */
import { v7 as uuidv7 } from 'uuid'
import { PAGES } from '../../../api/dashboard/routes.ts'
import type { Page } from '../../../api/dashboard/served/page.ts'
import { signedIn, visitor } from '../../support/dashboard.ts'
import { makeTeam, startService } from '../../support/service.ts'
import t from '../../support/tap.ts'

const service = await startService(t)
const team = await makeTeam(service)
const other = await makeTeam(service)

const people = {
  stranger: visitor(service),
  'other team': await signedIn(service, { team: other.id, role: 'owner' }),
  viewer: await signedIn(service, { team: team.id, role: 'viewer' }),
  editor: await signedIn(service, { team: team.id, role: 'editor' }),
  owner: await signedIn(service, { team: team.id, role: 'owner' }),
  operator: await signedIn(service, { operator: true }),
}
type Who = keyof typeof people

const MAY: Record<Page['access'], readonly Who[]> = {
  open: ['stranger', 'other team', 'viewer', 'editor', 'owner', 'operator'],
  person: ['other team', 'viewer', 'editor', 'owner', 'operator'],
  viewer: ['viewer', 'editor', 'owner', 'operator'],
  editor: ['editor', 'owner', 'operator'],
  owner: ['owner', 'operator'],
  operator: ['operator'],
}

/** A page's path for this team. Whatever else it names is not there: rights come first. */
const pathOf = ({ path }: Page): string =>
  path
    .replace(':team', team.id)
    .replace(/:(\w+)/g, (_, name: string) => (name.endsWith('id') ? uuidv7() : 'nothing'))

const REFUSED: Partial<Record<Who, number>> = { stranger: 303, 'other team': 404 }

t.test('there is a rule for each page', async (t) => {
  for (const { method, path, access } of PAGES) {
    t.ok(access in MAY, `${method} ${path}`)
    t.equal(
      path.startsWith('/teams/:team'),
      ['viewer', 'editor', 'owner'].includes(access),
      `${method} ${path}`,
    )
    t.equal(path.startsWith('/operator'), access === 'operator', `${method} ${path}`)
  }
})

for (const page of PAGES) {
  if (page.path === '/sign-out') continue
  t.test(`${page.method} ${page.path} is for ${page.access}`, async (t) => {
    for (const who of Object.keys(people) as Who[]) {
      const person = people[who]
      const { status, location } =
        page.method === 'GET' ? await person.get(pathOf(page)) : await person.post(pathOf(page))
      if (MAY[page.access].includes(who)) {
        t.notMatch(location ?? '', /^\/login\?return_to/, who)
        t.ok(status !== 403 && status < 500, `${who}: ${status}`)
      } else {
        const refused = REFUSED[who] ?? (page.access === 'operator' ? 404 : 403)
        t.equal(status, refused, who)
        if (who === 'stranger') t.match(location, /^\/login/)
      }
    }
  })
}
