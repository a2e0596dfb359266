/**
 * The button that tries a message again, and what it does, for either channel: what waits as it is, what was refused
 * outright or has expired by force and after a confirmation. What waits for its time is sent now by it. What a provider
 * has taken has no button. DECISIONS: Requeue.
 */

import type { Channel, Deliverable, DeliveryJob } from '../../../db/channels/channel.sql.ts'
import { pausesOf, requeueOne, type requeueWay } from '../../../db/delivery/requeue.ts'
import type { Form } from '../components/section.ts'
import { asActor } from '../server/action.ts'
import { hidden, press } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import type { Question, TeamRequest } from '../server/page.ts'

/** The value of the field `force` that means those too that were refused, that wait for their time or have expired. */
export const FORCE = 'refused'

/** The button, if there is a way. @param path where its form goes. */
export function requeueForms(way: Awaited<ReturnType<typeof requeueWay>>, path: string): Form[] {
  if (way === null) return []
  if (way === 'plain') return [press(path, 'Send again')]
  const fields = [hidden('force', FORCE), hidden('seen', way, true)]
  if (way === 'scheduled') return [press(path, 'Send now', { fields })]
  return [press(path, way === 'expired' ? 'Send it anyway' : 'Send again', { fields })]
}

/** What is asked before a message that has expired, or that a server rejected, is sent all the same. */
export function requeueQuestion({ form }: Pick<TeamRequest, 'form'>): Question | null {
  if (form.get('seen') === 'expired')
    return { question: 'It has expired. Send it anyway?', answer: 'Send it anyway' }
  if (form.get('seen') !== 'forced') return null
  return { question: 'It was rejected. Send it again to the same recipients?', answer: 'Send again' }
}

/**
 * What stands in the way of what was requeued; '' when nothing does. Our senders' names are for operators alone.
 * @param sender what the message goes through, where that is one of many.
 * @returns words to go behind a sentence.
 */
export async function pauseWords(
  { database }: Pick<PageDeps, 'database'>,
  channel: Deliverable,
  { team, person: { operator } }: Pick<TeamRequest, 'team' | 'person'>,
  sender?: string,
): Promise<string> {
  const pauses = await pausesOf(database, channel, { team_id: team.id, sender })
  if (pauses.length === 0) return ''
  const named = operator ? ` (${pauses.map(({ what }) => what).join(', ')})` : ''
  return ` Delivery is paused just now${named}: the next try comes when that ends.`
}

/** What is said of a message that was requeued. @param paused what stands in its way: see `pauseWords`. */
export const requeuedWords = (paused: string): string => `Queued to be sent again.${paused}`

/** Does what the button says. @returns what to say of it. @throws RequestError. */
export async function requeueAsAsked<J extends DeliveryJob>(
  request: TeamRequest<'id'>,
  deps: PageDeps,
  channel: Channel<J>,
): Promise<string> {
  const { team, params, form } = request
  const ref = { team_id: team.id, id: params.id }
  const how = { force: form.get('force') === FORCE, seen: form.get('seen') }
  await asActor(request, deps, (by) => requeueOne({ ...by, queue: deps.queue }, channel, ref, how))
  return requeuedWords(await pauseWords(deps, channel, request))
}
