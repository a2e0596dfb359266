/** Signs in an editor, who writes drafts of broadcasts, and a viewer. */
import { topicsOfTeam } from '../../db/audience/contacts/topics.sql.ts'
import { after as pageAfter, type Seen, signedIn, textOf } from './dashboard.ts'
import { world } from './service.ts'
import type { Test } from './tap.ts'

export async function startBroadcastPages(t: Test) {
  const { service, call, cli, database, team } = await world(t, { publicUrl: 'http://localhost' })
  const editor = await signedIn(service, { team: team.id, role: 'editor' })
  const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
  const at = (path = ''): string => `/teams/${team.id}/${path}`
  const after = (sent: Seen): Promise<Seen> => pageAfter(editor, sent)

  const topicOf = async (name: string) => {
    await editor.post(at('topics'), { name })
    const topics = await topicsOfTeam(database, team.id)
    return topics.find((topic) => topic.name === name)?.id ?? ''
  }
  const contact = (email: string, topic: string, properties = {}) =>
    call('POST', '/v1/contacts', { key: team.key, body: { email, topic_ids: [topic], properties } })

  async function templateOf(html: string): Promise<string> {
    const sent = await editor.post(at('templates'), { name: html, html, text: '' })
    return sent.location?.split('/').at(-1) ?? ''
  }

  /** Edits fields of a draft, step by step. */
  async function write(path: string, fields: Record<string, string | string[]>): Promise<void> {
    for (const step of ['message', 'audience', 'when'])
      await after(
        await editor.press(`${path}/edit?step=${step}`, `${path}/edit`, { next: 'save', ...fields, step }),
      )
  }

  /** Creates a draft with the form. @returns its path. */
  async function draft(fields: Record<string, string | string[]>): Promise<string> {
    const from = 'Acme <hello@example.com>'
    const all = { name: 'Spring', from, subject: 'Hi {{name}}', ...fields }
    const sent = await editor.post(at('broadcasts/new'), all)
    if (sent.status !== 303) throw new Error(`${sent.status} ${textOf(sent.html)}`)
    const path = sent.location ?? ''
    await write(path, all)
    return path
  }

  const place = { service, call, cli, database, team }
  return { ...place, editor, viewer, at, after, topicOf, contact, templateOf, write, draft }
}
