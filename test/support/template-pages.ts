/** Signs in a viewer, an editor and an owner, who write, publish and send email templates. */
import { auditEntries } from '../../db/accounts/audit/audit.sql.ts'
import { after, type Seen, signedIn, type Visitor } from './dashboard.ts'
import { anEmail, world } from './service.ts'
import type { Test } from './tap.ts'

/** Returns the value of a hidden field. */
const hiddenIn = ({ html }: Pick<Seen, 'html'>, name: string): string =>
  new RegExp(`name="${name}" value="([^"]+)"`).exec(html)?.[1] ?? ''

const idOf = (path: string): string => path.split('/').at(-1) ?? ''

export async function startTemplatePages(t: Test) {
  const { service, call, database, team } = await world(t)
  const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
  const editor = await signedIn(service, { team: team.id, role: 'editor' })
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  const at = (path: string): string => `/teams/${team.id}/${path}`
  const entries = async (subject: string) =>
    (await auditEntries(database, { team: team.id, limit: 50 }))
      .filter((entry) => entry.subject === subject)
      .map(({ action, actor }) => `${action} ${actor}`)

  /** Creates a template. @returns the path of its page. */
  async function makeTemplate(name: string, html: string, text = ''): Promise<string> {
    const { location } = await editor.post(at('templates'), { name, html, text })
    return location ?? ''
  }

  /** Saves a draft like the editor's form. */
  async function draft(person: Visitor, path: string, html: string, text = '') {
    const seen = hiddenIn(await person.get(path), 'seen')
    return after(person, await person.post(`${path}/draft`, { html, text, seen }))
  }

  /** Returns the draft and the version in the form that publishes a template's draft. */
  async function tokens(path: string) {
    const page = await editor.get(`${path}/changes`)
    return { draft: hiddenIn(page, 'draft'), version: hiddenIn(page, 'version') }
  }

  /** Sends an email with the template. @returns its HTML. */
  async function sentWith(path: string, variables: Record<string, string> = {}): Promise<string> {
    const body = anEmail({ html: undefined, template_id: idOf(path), variables })
    return (await call('POST', '/v1/emails', { key: team.key, body })).body.html
  }

  const people = { viewer, editor, owner }
  const work = { entries, makeTemplate, draft, tokens, hiddenIn, idOf, sentWith }
  return { service, call, database, team, at, ...people, ...work }
}
