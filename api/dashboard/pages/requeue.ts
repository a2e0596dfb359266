/**
 * Requeues a message of any channel. A rejected or expired message needs a confirmation and force. A
 * scheduled message is sent now. A message that a provider has accepted can't be requeued. DECISIONS:
 * Requeue.
 */

import type { Channel, Deliverable, DeliveryJob } from '../../../db/channels/channel.sql.ts'
import { assertRequeueable, loadPauses, requeueOne, type requeueWay } from '../../../db/delivery/requeue.ts'
import type { Waiting } from '../../../db/delivery/waiting.ts'
import type { Form } from '../components/section.ts'
import { asActor } from '../server/action.ts'
import { button, hidden } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import type { Question, TeamRequest } from '../server/page.ts'

/** The value of `force` that includes rejected, scheduled and expired messages. */
export const FORCE = 'refused'

/**
 * Builds the button if the message can be requeued. It is the main one only if the message was rejected or has failed.
 * A message that still waits is attempted without it, so its button is in the menu.
 * @param state the state of its wait, if it waits. @param path the path of its form.
 */
export function requeueForms(
  way: ReturnType<typeof requeueWay>,
  state: Waiting['state'] | undefined,
  path: string,
): Form[] {
  if (way === null) return []
  if (way === 'plain')
    return [
      state === undefined || state === 'failed'
        ? button(path, 'Send again')
        : button(path, 'Try now', {
            tone: 'quiet',
            menu: true,
            about: 'Doesn’t wait for the next scheduled attempt.',
          }),
    ]
  const fields = [hidden('force', FORCE), hidden('seen', way, true)]
  if (way === 'forced') return [button(path, 'Send again', { fields })]
  return [button(path, way === 'scheduled' ? 'Send now' : 'Send it anyway', { fields, tone: 'quiet' })]
}

/**
 * Returns the question before an expired or rejected message is sent.
 * @param message its description in the question. @throws RequestError if it can no longer be sent that way.
 */
export async function requeueQuestion(
  { team, params, form }: TeamRequest<'id'>,
  { database }: PageDeps,
  channel: Channel,
  message: string,
): Promise<(Question & { warning: string }) | null> {
  const seen = form.get('seen')
  if (seen !== 'expired' && seen !== 'forced') return null
  await assertRequeueable(database, channel, { team_id: team.id, id: params.id }, seen)
  return seen === 'expired'
    ? { question: `Send ${message} anyway?`, answer: 'Send it anyway', warning: 'It has expired.' }
    : { question: `Send ${message} again?`, answer: 'Send again', warning: 'It was rejected.' }
}

/**
 * Describes the pauses that delay a requeued message. Only operators see the names of our senders.
 * @param sender the message's sender, if the channel has several.
 * @returns a sentence to append, or ''.
 */
export async function pauseWords(
  { database }: Pick<PageDeps, 'database'>,
  channel: Deliverable,
  { team, person: { operator } }: Pick<TeamRequest, 'team' | 'person'>,
  sender?: string,
): Promise<string> {
  const pauses = await loadPauses(database, channel, { team_id: team.id, sender })
  if (pauses.length === 0) return ''
  const named = operator ? ` (${pauses.map(({ what }) => what).join(', ')})` : ''
  return ` Delivery is paused${named}. The next attempt is made when it resumes.`
}

/** Returns the notice after a requeue. @param paused the result of `pauseWords`. */
export const requeuedWords = (paused: string): string => `Queued to be sent again.${paused}`

/** Requeues a message as submitted. @returns the notice. @throws RequestError. */
export async function requeueAsAsked<J extends DeliveryJob>(
  request: TeamRequest<'id'>,
  deps: PageDeps,
  channel: Channel<J>,
): Promise<string> {
  const { team, params, form } = request
  const ref = { team_id: team.id, id: params.id }
  const force = form.get('force') === FORCE
  const how = { force, seen: form.get('seen') ?? (force ? null : 'plain') }
  await asActor(request, deps, (by) => requeueOne({ ...by, queue: deps.queue }, channel, ref, how))
  return requeuedWords(await pauseWords(deps, channel, request))
}
