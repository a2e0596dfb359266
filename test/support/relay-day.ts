/**
 * A day of a relay's reports: events of many emails in random order. Some are repeated, forged or about
 * unknown recipients. The expected results follow only from the order of states.
 */
import type { ContactEffect } from '../../db/audience/contacts/effect.ts'
import { signedReference } from '../../db/messages/emails/return-path.ts'
import {
  type EmailEventKind,
  type EmailStatus,
  higherStatus,
  statusOfEvent,
} from '../../db/messages/emails/status.ts'
import type { Secrets } from '../../db/process/secrets.ts'
import { eventAbout, type Post, postOf, type Relay, samplesOf } from './relays.ts'

type DayEmail = { id: string; team_id: string; to: readonly string[] }

export type Day = {
  posts: readonly Post[]
  forged: number
  /** The number of distinct authentic events. */
  events: number
  statuses: ReadonlyMap<string, EmailStatus>
  contacts: ReadonlyMap<string, 'subscribed' | 'unsubscribed' | 'bounced' | 'complained'>
}

/** Fewer soft bounces than a suppression needs. */
const MAX_SOFT = 4

/** Returns random numbers that only depend on the seed. */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

export function shuffled<T>(items: readonly T[], random: () => number): T[] {
  const all = [...items]
  for (let at = all.length - 1; at > 0; at--) {
    const other = Math.floor(random() * (at + 1))
    const [one, two] = [all[at], all[other]]
    if (one !== undefined && two !== undefined) [all[at], all[other]] = [two, one]
  }
  return all
}

/** @param count the number of events, of which 5 % are forged and 10 % repeated. */
export function relayDay(
  relay: Relay,
  {
    emails,
    secrets,
    count,
    seed,
  }: { emails: readonly DayEmail[]; secrets: Secrets; count: number; seed: number },
): Day {
  const random = randomFrom(seed)
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T
  const samples = samplesOf(relay)
  const statuses = new Map<string, EmailStatus>(emails.map(({ id }) => [id, 'queued']))
  const contacts = new Map<string, 'subscribed' | 'unsubscribed' | 'bounced' | 'complained'>(
    emails.flatMap(({ to }) => to.map((address) => [address, 'subscribed'] as const)),
  )
  const softs = new Map<string, number>()
  const genuine: unknown[] = []
  const forged: unknown[] = []
  for (let n = 0; n < count; n++) {
    const email = pick(emails)
    const { event, is } = pick(samples)
    const isForged = random() < 0.05
    const isForeign = random() < 0.03
    const recipient = isForeign ? `nobody${n}@example.org` : pick(email.to)
    const [kind, effect] = is.split(' ') as [EmailEventKind, ContactEffect]
    const soft = softs.get(recipient) ?? 0
    if (effect === 'soft' && soft >= MAX_SOFT) continue
    const at = new Date(Date.now() - Math.floor(random() * 80_000_000))
    const about = { recipient, at, id: `e${seed}-${n}`, reference: signedReference(secrets, email) }
    ;(isForged ? forged : genuine).push(eventAbout(relay, event, about))
    if (isForged || isForeign || is === 'nothing') continue
    if (effect === 'soft') softs.set(recipient, soft + 1)
    statuses.set(email.id, higherStatus(statuses.get(email.id) ?? 'queued', statusOfEvent(kind)))
    if (effect === 'complaint') contacts.set(recipient, 'complained')
    else if (effect === 'hard' && contacts.get(recipient) !== 'complained') contacts.set(recipient, 'bounced')
    else if (effect === 'unsubscribe' && contacts.get(recipient) === 'subscribed')
      contacts.set(recipient, 'unsubscribed')
  }
  const doubled = genuine.filter(() => random() < 0.1)
  const order = shuffled([...genuine, ...doubled], random)
  const size = relay === 'sendgrid' || relay === 'brevo' ? 20 : 1
  const posts: Post[] = []
  for (let at = 0; at < order.length; at += size) posts.push(postOf(relay, order.slice(at, at + size)))
  const spoilt = forged.map((event) => {
    const { raw, headers } = postOf(relay, [event])
    const text = raw.toString().replace(/"signature":"../, '"signature":"zz')
    const wrong = relay === 'sendgrid' ? `${text} ` : text
    return { raw: Buffer.from(wrong), headers: { ...headers, Authorization: 'Bearer forged' } }
  })
  return {
    posts: shuffled([...posts, ...spoilt], random),
    forged: spoilt.length,
    events: new Set(genuine.map((event) => JSON.stringify(event))).size,
    statuses,
    contacts,
  }
}
