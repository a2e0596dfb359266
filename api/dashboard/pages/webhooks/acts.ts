/** What is done to a webhook: changed, tested, enabled, disabled, given a new secret, sent again to, removed. */
import {
  changeEndpoint,
  disableEndpoint,
  enableEndpoint,
  endpointOrRefusal,
  removeEndpoint,
  rotateSecret,
  testEndpoint,
} from '../../../../db/messages/webhooks/endpoints.ts'
import { REPLAYED } from '../../../../db/messages/webhooks/listing.sql.ts'
import { replayOf } from '../../../../db/messages/webhooks/replay.ts'
import { beginWork } from '../../../../db/upkeep/work/work.ts'
import { inPerson } from '../../served/act.ts'
import { dayOf, wordGiven } from '../../served/list.ts'
import { redirect, type TeamPage, type TeamRequest, teamPath } from '../../served/page.ts'
import { workAnswer } from '../work.ts'
import { given, PATH } from './parts.ts'

type Act = (request: TeamRequest, deps: Parameters<TeamPage['handle']>[1], id: string) => Promise<string>

/** A page that does one thing to an endpoint, says so, and goes back to it. */
const acting = (verb: string, act: Act): TeamPage => ({
  method: 'POST',
  path: `${PATH}/:id/${verb}`,
  access: 'owner',
  async handle(request, deps) {
    const id = request.params.id ?? ''
    const words = await act(request, deps, id)
    return redirect(teamPath(request.team, 'webhooks', id), words)
  },
})

const set = acting('set', async (request, deps, id) => {
  const before = await endpointOrRefusal(deps.database, request.team.id, id)
  const fields = given(request.form, before)
  await inPerson(request, deps, (by) =>
    changeEndpoint({ ...by, allowed: deps.webhookNetworks }, request.team.id, id, fields),
  )
  return 'It is saved.'
})

const test = acting('test', async (request, deps, id) => {
  await inPerson(request, deps, (by) => testEndpoint(by, request.team.id, id))
  return 'A test is on its way: what comes back is listed below.'
})

const enable = acting('enable', async (request, deps, id) => {
  await inPerson(request, deps, (by) => enableEndpoint(by, request.team.id, id))
  return 'It gets events from now on. What failed before can be sent again below.'
})

const disable = acting('disable', async (request, deps, id) => {
  await inPerson(request, deps, (by) => disableEndpoint(by, request.team.id, id))
  return 'It gets nothing more.'
})

const replay: TeamPage = {
  method: 'POST',
  path: `${PATH}/:id/replay`,
  access: 'owner',
  async handle({ form, team, params, person }, deps) {
    const id = params.id ?? ''
    const filter = {
      from: dayOf(form, 'from'),
      to: dayOf(form, 'to', 1),
      type: form.get('type') || undefined,
      what: wordGiven(form, 'what', REPLAYED) ?? 'failed',
    }
    const given = await replayOf(deps.database, team.id, id, filter)
    const wanted = { kind: 'webhook.replay' as const, given, team_id: team.id, actor: person.email }
    const work = await beginWork(deps, wanted)
    return workAnswer(work, teamPath(team, 'webhooks', id))
  },
}

const rotate: TeamPage = {
  method: 'POST',
  path: `${PATH}/:id/rotate`,
  access: 'owner',
  async handle(request, deps) {
    const id = request.params.id ?? ''
    const { secret } = await inPerson(request, deps, (by) =>
      rotateSecret({ ...by, secrets: deps.secrets }, request.team.id, id),
    )
    const words = 'The new secret. Copy it now: it is not shown again. The old one signs too for 24 hours.'
    return redirect(teamPath(request.team, 'webhooks', id), { tone: 'good', text: words, secret })
  },
}

const remove: TeamPage = {
  method: 'POST',
  path: `${PATH}/:id/remove`,
  access: 'owner',
  async handle(request, deps) {
    const { name } = await inPerson(request, deps, (by) =>
      removeEndpoint(by, request.team.id, request.params.id ?? ''),
    )
    return redirect(teamPath(request.team, 'webhooks'), `${name} is removed.`)
  },
}

export const webhookActs = [set, test, enable, disable, replay, rotate, remove]
