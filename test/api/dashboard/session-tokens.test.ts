/** Session tokens of members. They have the permissions of their user. */
import { auditEntries } from '../../../db/accounts/audit/audit.sql.ts'
import { addMember } from '../../../db/accounts/members/members.ts'
import type { Role } from '../../../db/accounts/members/roles.ts'
import { resumeTeam, suspendTeam } from '../../../db/accounts/teams/suspend.ts'
import { adminCli } from '../../support/admin.ts'
import { canary } from '../../support/canary.ts'
import { shows, signedIn, type Visitor } from '../../support/dashboard.ts'
import { anEmail, makeTeam, sendEmail, startService, type TestTeam } from '../../support/service.ts'
import t from '../../support/tap.ts'
import { aMessage, makeTemplate } from '../../support/whatsapp.ts'

let now = new Date()
const service = await startService(t, { clock: () => now })
const { call, database } = service
const cli = adminCli({ DATABASE_URL: service.url })
const by = { tx: database, now, actor: 'cli' as const }

const pageOf = ({ id }: TestTeam): string => `/teams/${id}/integration/tokens`
const member = (team: TestTeam, role: Role) => signedIn(service, { team: team.id, role })

/** Creates a token and reads it from the next page. */
async function makeToken(person: Visitor, team: TestTeam): Promise<string> {
  const { location } = await person.post(pageOf(team))
  const [token = ''] = /hgs_\w+/.exec((await person.get(location ?? '')).html) ?? []
  canary.secrets(token)
  return token
}

const revokeOf = (html: string): string[] =>
  [...html.matchAll(/action="\/dashboard(\/teams\/[\w-]+\/integration\/tokens\/[\w-]+\/revoke)/g)].map(
    ([, path = '']) => path,
  )

const send = async (key: string) => {
  const { status, body } = await call('POST', '/v1/emails', { key, body: anEmail() })
  return body.error?.code ?? status
}
const unsubscribe = async (key: string) => {
  const { status, body } = await call('POST', '/v1/marketing/unsubscribe', {
    key,
    body: { email: 'ana@example.org' },
  })
  return body.error?.code ?? status
}

t.test('actions with a session token are audited as its user', async (t) => {
  const team = await makeTeam(service)
  const person = await member(team, 'editor')
  const key = await makeToken(person, team)
  const scheduled_at = new Date(now.getTime() + 3_600_000).toISOString()
  const later = new Date(now.getTime() + 7_200_000).toISOString()
  const id = await sendEmail(service, { key }, { scheduled_at })
  const move = { key, body: { scheduled_at: later } }
  t.equal((await call('PATCH', `/v1/emails/${id}`, move)).status, 200)
  t.equal((await call('POST', `/v1/emails/${id}/cancel`, { key })).status, 200)
  const entries = await auditEntries(database, { team: team.id, limit: 10 })
  const own = entries
    .filter(({ subject }) => subject === id)
    .sort((one, two) => one.action.localeCompare(two.action))
  t.match(own, [
    { action: 'email.cancel', subject: id, actor: person.email },
    { action: 'email.reschedule', subject: id, actor: person.email, detail: later },
  ])
})

t.test("owners' and editors' tokens can send, viewers' can't", async (t) => {
  const team = await makeTeam(service)
  const { id: template_id } = await makeTemplate(service, team.id)
  await call('POST', '/v1/contacts', { key: team.key, body: { email: 'ana@example.org' } })
  for (const role of ['owner', 'editor'] as const) {
    const token = await makeToken(await member(team, role), team)
    t.equal(await send(token), 201, role)
    const message = await call('POST', '/v1/whatsapp/messages', { key: token, body: aMessage(template_id) })
    t.equal(message.status, 201, role)
    t.equal(await unsubscribe(token), 204, role)
    const batch = await call('POST', '/v1/emails/batch', { key: token, body: { emails: [anEmail()] } })
    t.match(batch, {
      status: 403,
      body: { error: { message: "This endpoint only accepts API keys. Session tokens aren't accepted." } },
    })
  }
  const token = await makeToken(await member(team, 'viewer'), team)
  t.equal(await send(token), 'insufficient_scope')
  t.equal(await unsubscribe(token), 'insufficient_scope')
  const message = await call('POST', '/v1/whatsapp/messages', { key: token, body: aMessage(template_id) })
  t.match(message, {
    status: 403,
    body: { error: { message: "This session token doesn't have the whatsapp:send scope." } },
  })
  const { token: operators } = await cli.json(['session', 'create', team.id])
  t.equal(await send(operators), 201, 'one that an operator made acts for its team')
  t.equal(await unsubscribe(operators), 204)
})

t.test('the page only suggests creating a token to members', async (t) => {
  const team = await makeTeam(service)
  const page = await (await signedIn(service, { operator: true })).get(pageOf(team))
  shows(t, page, 'The team has no session tokens.')
  t.notMatch(page.html, /create (one|a session token)/i)
  const own = await (await member(team, 'viewer')).get(pageOf(team))
  shows(
    t,
    own,
    /Create a session token .*You have no session tokens\. Create one to try a request as yourself\./,
  )
})

t.test('a token is shown once and valid for 30 days', async (t) => {
  const team = await makeTeam(service)
  const [owner, editor, other] = [
    await member(team, 'owner'),
    await member(team, 'editor'),
    await member(team, 'editor'),
  ]
  const token = await makeToken(editor, team)
  for (const person of [owner, editor, other]) t.notMatch((await person.get(pageOf(team))).html, token)
  t.equal(revokeOf((await editor.get(pageOf(team))).html).length, 1)
  t.equal(revokeOf((await owner.get(pageOf(team))).html).length, 1)
  t.equal(revokeOf((await other.get(pageOf(team))).html).length, 0)
  t.match(await cli.json(['session', 'list', team.id]), [
    { user: editor.email, role: 'editor', revoked_at: null },
  ])
  const made = now
  now = new Date(made.getTime() + 30 * 86_400_000 - 60_000)
  t.equal(await send(token), 201)
  now = new Date(now.getTime() + 120_000)
  t.equal(await send(token), 'unauthorized')
  now = made
})

t.test('only its user and owners can revoke a token', async (t) => {
  const team = await makeTeam(service)
  const elsewhere = await makeTeam(service, { domain: 'elsewhere.test' })
  const [owner, editor, other] = [
    await member(team, 'owner'),
    await member(team, 'editor'),
    await member(team, 'editor'),
  ]
  const [first, second] = [await makeToken(editor, team), await makeToken(editor, team)]
  const [newest = '', oldest = ''] = revokeOf((await editor.get(pageOf(team))).html)
  t.equal((await other.post(newest)).status, 404)
  const stranger = await member(elsewhere, 'owner')
  t.equal((await stranger.post(newest)).status, 404)
  t.equal((await stranger.post(newest.replace(team.id, elsewhere.id))).status, 404)
  t.strictSame([await send(first), await send(second)], [201, 201])
  t.equal((await editor.post(newest)).status, 303)
  t.strictSame([await send(first), await send(second)], [201, 'unauthorized'])
  t.equal((await owner.post(oldest)).status, 303)
  t.equal(await send(first), 'unauthorized')
  const page = await editor.get(pageOf(team))
  shows(t, page, /No active session tokens\. Revoked tokens /)
  t.equal(page.html.split('<tbody>')[1]?.match(/<tr>/g)?.length, 2)
  const lines = (await auditEntries(database, { team: team.id, limit: 50 })).filter(({ action }) =>
    action.startsWith('session.'),
  )
  t.strictSame(
    lines.map(({ action, actor }) => `${action} ${actor}`).sort(),
    [
      ...[`session.create ${editor.email}`, `session.create ${editor.email}`],
      ...[`session.revoke ${editor.email}`, `session.revoke ${owner.email}`],
    ].sort(),
  )
})

t.test('tokens end with the membership and follow a lower role', async (t) => {
  const team = await makeTeam(service)
  await member(team, 'owner')
  const editor = await member(team, 'editor')
  const token = await makeToken(editor, team)
  const become = (role: Role) => addMember(by, team.id, { email: editor.email, role })
  await become('viewer')
  t.equal(await send(token), 'insufficient_scope')
  await become('owner')
  t.equal(await send(token), 201)
  const viewer = await member(team, 'viewer')
  const low = await makeToken(viewer, team)
  await addMember(by, team.id, { email: viewer.email, role: 'owner' })
  t.equal(await send(low), 'insufficient_scope', 'what a viewer made grows into nothing')
  await cli.json(['member', 'remove', team.id, editor.email])
  t.equal(await send(token), 'unauthorized')
  await become('editor')
  t.equal(await send(token), 'unauthorized', 'coming back does not bring it back')
})

t.test('only members can create tokens, up to 20, in an active team', async (t) => {
  const team = await makeTeam(service)
  const editor = await member(team, 'editor')
  await suspendTeam(by, team.id)
  t.equal((await editor.post(pageOf(team))).status, 403)
  t.notMatch((await editor.get(pageOf(team))).html, 'Create a session token')
  await resumeTeam({ ...by, now: new Date() }, team.id)
  const operator = await signedIn(service, { operator: true })
  t.notMatch((await operator.get(pageOf(team))).html, 'Create a session token')
  const said = await operator.post(pageOf(team))
  t.equal(said.status, 400)
  shows(t, said, "You aren't a member of this team, so you can't create a session token in it")
  for (let made = 0; made < 20; made++) t.equal((await editor.post(pageOf(team))).status, 303)
  t.equal((await editor.post(pageOf(team))).status, 400)
})
