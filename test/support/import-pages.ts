/** Signs in an editor who imports files, and runs the imports. */
import { contactByIdentity } from '../../db/audience/contacts/contacts.sql.ts'
import { signedIn, textOf } from './dashboard.ts'
import { world } from './service.ts'
import type { Test } from './tap.ts'
import { startWorker, until } from './worker.ts'

export async function startImportPages(t: Test) {
  const { service, database, call, team, lastEntry } = await world(t, { team: { plan: 'pro' } })
  const editor = await signedIn(service, { team: team.id, role: 'editor' })
  const at = (...rest: string[]) => `/teams/${team.id}/${rest.join('/')}`
  const importPath = at('contacts', 'import')
  const known = (email: string) => contactByIdentity(database, team.id, email)

  const create = (email: string, properties: Record<string, string> = {}) =>
    call('POST', '/v1/contacts', { key: team.key, body: { email, properties } })

  /** Uploads a file. @returns the draft's path. */
  async function uploaded(file: string | Uint8Array<ArrayBuffer>, to = importPath, name = 'people.csv') {
    const sent = await editor.upload(to, name, file)
    if (sent.status !== 303) throw new Error(`not taken: ${textOf(sent.html)}`)
    return sent.location ?? ''
  }

  async function start(draft: string): Promise<void> {
    const { location, html } = await editor.post(`${draft}/start`)
    if (location !== draft) throw new Error(`not started: ${textOf(html)}`)
  }

  /** Runs a worker until an import has ended. @returns its page. */
  async function finish(draft: string) {
    const { stop } = await startWorker(t, service)
    await until('it is over', async () => /Done|Failed/.test((await editor.get(draft)).html))
    await stop()
    return editor.get(draft)
  }

  /** Starts a draft and waits for the end. @returns its page. */
  async function imported(draft: string) {
    await start(draft)
    return finish(draft)
  }

  const pages = { editor, at, importPath, known, create, uploaded, start, finish, imported }
  return { service, database, call, team, lastEntry, ...pages }
}
