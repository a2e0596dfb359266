/** Actions of a webhook: change, test, enable, disable, rotate the secret, replay and remove. */

import type { By } from '../../../../db/accounts/audit/record.ts'
import { KEPT_DAYS } from '../../../../db/channels/events/webhooks.sql.ts'
import { WEBHOOK, WEBHOOK_SENDERS } from '../../../../db/channels/webhook.sql.ts'
import { beginBackgroundJob } from '../../../../db/maintenance/background-jobs/background-jobs.ts'
import { secretMark } from '../../../../db/messages/webhooks/endpoints.sql.ts'
import {
  changeEndpoint,
  disableEndpoint,
  enableEndpoint,
  removeEndpoint,
  requireEndpoint,
  rotateSecret,
  testEndpoint,
} from '../../../../db/messages/webhooks/endpoints.ts'
import { REPLAYED } from '../../../../db/messages/webhooks/listing.sql.ts'
import { countReplay, type Replay, replayOf } from '../../../../db/messages/webhooks/replay.ts'
import { plural } from '../../../../db/plural.ts'
import { parseZone } from '../../components/zone.ts'
import { already, assertUnreplaced } from '../../server/already.ts'
import { action, post } from '../../server/builders.ts'
import { countedValues, readCounted } from '../../server/confirmed-count.ts'
import type { PageDeps } from '../../server/deps.ts'
import { readDay, wordParam } from '../../server/list.ts'
import { type PageAnswer, type Question, redirect, type TeamRequest, teamPath } from '../../server/page.ts'
import { backgroundJobAnswer, findJobTexts } from '../background-job.ts'
import { pauseWords } from '../requeue.ts'
import { changedFields, PATH, REPLAY_LABELS } from './parts.ts'

const MAX_REPLAYED = 100_000

const one = ({ team, params }: TeamRequest<'id'>): string => teamPath(team, 'webhooks', params.id)

const set = action('owner', `${PATH}/:id/set`, async (by, request) => {
  const { team, params, form } = request
  const before = await requireEndpoint(by.tx, team.id, params.id)
  await changeEndpoint(
    { ...by, allowed: by.webhookNetworks },
    team.id,
    before.id,
    changedFields(form, before),
  )
  return redirect(one(request), 'The webhook was saved.')
})

const doing = (verb: string, work: (by: By, teamId: string, id: string) => Promise<unknown>, words: string) =>
  action('owner', `${PATH}/:id/${verb}`, async (by, request) => {
    await work(by, request.team.id, request.params.id)
    return redirect(one(request), words)
  })

function replayWanted(
  { form, team, params, cookies }: TeamRequest<'id'>,
  { database }: PageDeps,
): Promise<Replay> {
  const zone = parseZone(cookies('zone'))
  return replayOf(database, team.id, params.id, {
    from: readDay(form, 'from', { zone }),
    to: readDay(form, 'to', { zone, next: true }),
    type: form.get('type') || undefined,
    what: wordParam(form, 'what', REPLAYED) ?? 'failed',
  })
}

/** Asks for confirmation of a replay, or shows that no events match. */
async function askToReplay(request: TeamRequest<'id'>, deps: PageDeps): Promise<Question | PageAnswer> {
  const { database } = deps
  const { team } = request
  const replay = await replayWanted(request, deps)
  const { name, backlog } = await requireEndpoint(database, team.id, replay.endpoint_id)
  const path = teamPath(team, 'webhooks', replay.endpoint_id)
  const count = await countReplay(database, team.id, replay, MAX_REPLAYED + 1)
  if (count === 0) {
    const waiting =
      backlog > 0 ? ` Events that wait for their next attempt: ${backlog.toLocaleString('en-US')}.` : ''
    return redirect(path, {
      tone: 'bad',
      text: `Nothing to send again. No event matches “${REPLAY_LABELS[replay.what]}”.${waiting}`,
    })
  }
  const most = Math.min(count, MAX_REPLAYED)
  const which =
    count > most
      ? `the oldest ${most.toLocaleString('en-US')} webhook events`
      : plural(count, 'webhook event')
  return {
    question: `Send ${which} to ${name} again?`,
    warning: `Status: ${REPLAY_LABELS[replay.what]}.`,
    answer: 'Send again',
    fields: countedValues({ most, seen: replay.seen }),
  }
}

const disable = doing(
  'disable',
  disableEndpoint,
  `The webhook is disabled. Events of the next ${KEPT_DAYS} days are kept. You can send them once the webhook is enabled.`,
).confirm(async ({ team, params }, { database }) => {
  const { name, state } = await requireEndpoint(database, team.id, params.id)
  if (state === 'disabled') throw already(name, state)
  return {
    question: `Stop sending to ${name}? Waiting events fail. Events of the next ${KEPT_DAYS} days are kept. You can send all of them once the webhook is enabled.`,
    answer: 'Disable webhook',
    tone: 'danger',
  }
})

const replay = post('owner', `${PATH}/:id/replay`, async (request, deps) => {
  const { form, team, params, person } = request
  const id = params.id
  const replay = await replayWanted(request, deps)
  const counted = readCounted(form)
  const given = { ...replay, ...counted }
  const shared = { given, total: counted.most, team_id: team.id, actor: person.email }
  const job = await beginBackgroundJob(deps, { kind: 'webhook.replay', ...shared })
  const paused = await pauseWords(deps, WEBHOOK, request, WEBHOOK_SENDERS + id)
  return backgroundJobAnswer(job, teamPath(team, 'webhooks', id), {
    tone: job.result.replayed === 0 ? 'bad' : 'good',
    text:
      job.result.replayed === 0
        ? 'Nothing was sent again, because these events have changed since they were counted.'
        : findJobTexts(job).outcome(job.result) + paused,
  })
}).confirm(askToReplay)

const rotate = action('owner', `${PATH}/:id/rotate`, async (by, request) => {
  const id = request.params.id
  const { secret } = await rotateSecret(by, request.team.id, id, { seen: request.form.get('seen') })
  const words = 'This is the new secret. Copy it now. It isn’t shown again.'
  return redirect(teamPath(request.team, 'webhooks', id), { tone: 'good', text: words, secret })
}).confirm(async ({ team, params, form }, { database }) => {
  const { id, name } = await requireEndpoint(database, team.id, params.id)
  assertUnreplaced(`The secret of ${name}`, form.get('seen'), await secretMark(database, team.id, id))
  return {
    question: `Create a new secret for ${name}? The old one also signs for 24 hours.`,
    answer: 'Create a new secret',
  }
})

const remove = action('owner', `${PATH}/:id/remove`, async (by, request) => {
  const { name } = await removeEndpoint(by, request.team.id, request.params.id)
  return redirect(teamPath(request.team, 'webhooks'), `${name} was removed.`)
}).confirm(async ({ team, params }, { database }) => {
  const { name } = await requireEndpoint(database, team.id, params.id)
  return { question: `Remove ${name}, and all events sent to it?`, answer: 'Remove webhook', tone: 'danger' }
})

export const webhookActs = [
  set,
  doing('test', testEndpoint, 'A test is on its way. The response is listed below.'),
  doing('enable', enableEndpoint, 'The webhook is enabled. You can send failed events again below.'),
  disable,
  replay,
  rotate,
  remove,
]
