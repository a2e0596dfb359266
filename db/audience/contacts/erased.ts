/**
 * Gives a contact whose address was erased before the status that it ended with, and takes the topics off it that its
 * person had left, so that marketing never mails somebody who had unsubscribed, bounced or complained, nor about what
 * nobody wanted. Promises: without SECRET_KEY no address can be read back. A team that has erased nobody pays one look
 * at an empty index.
 */
import type { At, Tx } from '../../postgres/pool.ts'
import type { Secrets } from '../../process/secrets.ts'
import type { ContactStatus } from './contacts.sql.ts'
import { type ErasedRow, erasedByHashes, forgetErased, hasErased, keepErased } from './erased.sql.ts'

/** What a new contact starts with. */
type InitialState = {
  status: ContactStatus
  suppression: ErasedRow['suppression']
  /** Topics that it does not get, though they are given to it when it is made. */
  left_topic_ids: readonly string[]
}

export const NEW_CONTACT: InitialState = { status: 'subscribed', suppression: null, left_topic_ids: [] }

const hashed = (teamId: string, identity: string): Buffer => Buffer.from(`${teamId}\0${identity}`)

/** The hash that stands for an address in a team, by the key of today. */
export const erasureHash = (secrets: Pick<Secrets, 'sign'>, teamId: string, identity: string): Buffer =>
  secrets.sign('erasure', hashed(teamId, identity), 32)

/** How new contacts of these identities begin: those that are not in the map begin `NEW_CONTACT`. */
export async function initialStates(
  tx: Tx,
  secrets: Pick<Secrets, 'signatures'>,
  teamId: string,
  identities: readonly string[],
): Promise<ReadonlyMap<string, InitialState>> {
  if (identities.length === 0 || !(await hasErased(tx, teamId))) return new Map()
  const byHash = new Map(
    identities.flatMap((identity) =>
      secrets
        .signatures('erasure', hashed(teamId, identity), 32)
        .map((hash) => [hash.toString('hex'), identity] as const),
    ),
  )
  const kept = await erasedByHashes(
    tx,
    teamId,
    [...byHash.keys()].map((hex) => Buffer.from(hex, 'hex')),
  )
  const states = new Map<string, InitialState>()
  // An address may be kept under both of two keys: the later state counts, and topics that were left stay so.
  for (const { hash, status, suppression, left_topic_ids } of kept) {
    const identity = byHash.get(hash.toString('hex')) ?? ''
    const before = states.get(identity) ?? NEW_CONTACT
    const left = [...new Set([...before.left_topic_ids, ...left_topic_ids])]
    const said = status === 'subscribed' ? before : { status, suppression }
    states.set(identity, { status: said.status, suppression: said.suppression, left_topic_ids: left })
  }
  return states
}

/**
 * Ends what was kept of an address whose contact has another status since by a person: made once more, it begins so.
 * Topics that its person had left stay left, but for these, which were chosen now.
 */
export async function endWishes(
  { tx, now, secrets }: At & { secrets: Pick<Secrets, 'sign' | 'signatures'> },
  teamId: string,
  identity: string,
  {
    chosen = [],
    status = 'subscribed',
  }: { chosen?: readonly string[]; status?: 'subscribed' | 'unsubscribed' } = {},
): Promise<void> {
  const kept = (await initialStates(tx, secrets, teamId, [identity])).get(identity)
  if (!kept) return
  await forgetErased(tx, teamId, secrets.signatures('erasure', hashed(teamId, identity), 32))
  const left_topic_ids = kept.left_topic_ids.filter((topic) => !chosen.includes(topic))
  if (status === 'subscribed' && left_topic_ids.length === 0) return
  const hash = erasureHash(secrets, teamId, identity)
  await keepErased(tx, teamId, { hash, status, suppression: null, left_topic_ids }, now)
}
