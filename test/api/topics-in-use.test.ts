/** A topic can't be deleted while a broadcast that hasn't ended includes or excludes it. */
import { sql } from 'slonik'
import { removeTopic } from '../../db/audience/contacts/topics.ts'
import { removeTemplate } from '../../db/content/templates/remove.ts'
import { RequestError } from '../../db/errors.ts'
import { sendToUnreached } from '../../db/messages/broadcasts/resend.ts'
import { adminCli } from '../support/admin.ts'
import { beginBroadcasting, broadcastingOf } from '../support/broadcasting.ts'
import { shows, signedIn } from '../support/dashboard.ts'
import t from '../support/tap.ts'

const { service, team, topic_id, create, post, contacts, get } = await beginBroadcasting(t)
const { database, deps, call } = service
const { key } = team

const anotherTopic = async () => (await broadcastingOf(service, team)).topic_id
const by = { now: new Date(), actor: 'ana' }
/** Deletes a topic. @returns the error, or null if it was deleted */
const remove = (id: string): Promise<string | null> =>
  database
    .transaction((tx) => removeTopic({ tx, ...by }, team.id, id))
    .then(() => null)
    .catch((error: unknown) => {
      if (error instanceof RequestError) return `${error.code}: ${error.message}`
      throw error
    })

t.test('can’t delete a topic in use, and names its broadcasts', async (t) => {
  await contacts(['ana'])
  const excluded = await anotherTopic()
  const [draft, timed] = [
    await create({ name: 'Spring', exclude_topic_ids: [excluded] }),
    await create({ name: 'Summer', exclude_topic_ids: [excluded] }),
  ]
  const send_at = new Date(Date.now() + 3_600_000).toISOString()
  t.match(await post(timed, 'send', { send_at }), { status: 202, body: { state: 'scheduled' } })
  const inUse = /"Summer" \(scheduled\), "Spring" \(draft\)/
  const cli = adminCli({ DATABASE_URL: service.url })
  t.match(await cli.fault(['topic', 'delete', team.id, excluded]), inUse)
  const editor = await signedIn(service, { team: team.id, role: 'editor' })
  const page = await editor.post(`/teams/${team.id}/topics/${excluded}/delete`)
  t.equal(page.status, 409)
  shows(t, page, inUse)
  t.match(await remove(topic_id), /^invalid_state: The topic is in use by the broadcasts/)
  t.equal((await call('DELETE', `/v1/broadcasts/${draft}`, { key })).status, 204)
  await post(timed, 'resume')
  for (const state of ['sending', 'paused']) {
    await database.query(sql.unsafe`update broadcasts set state = ${state} where id = ${timed}`)
    t.match(await remove(excluded), new RegExp(`"Summer" \\(${state}\\)`))
  }
  await post(timed, 'cancel')
  t.equal(await remove(excluded), null, 'one that has ended holds nothing')
})

t.test('a deleted topic blocks a start, shown on the page', async (t) => {
  await contacts(['ben'])
  const excluded = await anotherTopic()
  const id = await create({ exclude_topic_ids: [excluded] })
  await database.query(sql.unsafe`delete from topics where id = ${excluded}`)
  const words = `The excluded topic ${excluded} has been deleted. Choose the topics again.`
  const refused = await post(id, 'send')
  t.match(refused, { status: 409, body: { error: { code: 'invalid_state' } } })
  t.match(refused.body.error.message, words)
  const viewer = await signedIn(service, { team: team.id, role: 'viewer' })
  shows(t, await viewer.get(`/teams/${team.id}/broadcasts/${id}`), new RegExp(words, 'i'))
  t.match(await get(id), { body: { state: 'draft' } })
})

t.test('duplicates an ended broadcast without its topic and template', async (t) => {
  const own = await broadcastingOf(service, team)
  const id = await own.create({ exclude_topic_ids: [topic_id] })
  t.equal((await post(id, 'cancel')).status, 200)
  t.equal(await remove(own.topic_id), null)
  await database.transaction((tx) => removeTemplate({ tx, ...by }, team.id, own.template_id))
  const editor = await signedIn(service, { team: team.id, role: 'editor' })
  const pressed = await editor.post(`/teams/${team.id}/broadcasts/${id}/duplicate`)
  t.equal(pressed.status, 303, pressed.html)
  const copy = pressed.location?.split('?')[0]?.split('/').at(-1) ?? ''
  t.match(await get(copy), {
    body: { state: 'draft', topic_ids: [own.topic_id], exclude_topic_ids: [topic_id] },
  })
  const words = new RegExp(`No template.*The selected topic ${own.topic_id} has been deleted`)
  t.match(await post(copy, 'send'), { status: 409, body: { error: { message: words } } })
  t.match(await remove(topic_id), /^invalid_state: .*"Copy of/, 'what it names and is there stays')
  const page = `/teams/${team.id}/broadcasts/${copy}`
  shows(t, await editor.get(page), /No template/)
  shows(t, await editor.get(`${page}/edit?step=audience`), /a deleted topic/)
})

t.test('a topic is never deleted and used at once', async (t) => {
  await contacts(['cid'])
  for (let round = 0; round < 8; round += 1) {
    const excluded = await anotherTopic()
    const [made, removed] = await Promise.all([
      call('POST', '/v1/broadcasts', {
        key,
        body: { ...(await bodyOf(excluded)), idempotency_key: `r${round}` },
      }),
      remove(excluded),
    ])
    if (made.status === 201) t.match(removed, /^invalid_state/, 'created first')
    else t.match([made.status, removed], [404, null], 'deleted first')
  }
  for (let round = 0; round < 8; round += 1) {
    const excluded = await anotherTopic()
    const id = await create({ exclude_topic_ids: [excluded] })
    await post(id, 'send')
    await post(id, 'cancel')
    const again = database
      .transaction((tx) => sendToUnreached({ ...deps, tx, ...by }, { team_id: team.id, domain: null }, id))
      .then(() => 'sending')
      .catch((error: Error) => error.message)
    const [went, removed] = await Promise.all([again, remove(excluded)])
    if (went === 'sending') t.match(removed, /^invalid_state/, 'begun first')
    else t.match([went, removed], [/The excluded topic/, null], 'deleted first')
  }
})

const bodyOf = async (excluded: string) => {
  const { body } = await get(await create())
  const { name, template_id, from, subject, topic_ids } = body
  return { name, template_id, from, subject, topic_ids, exclude_topic_ids: [excluded] }
}
