/**
 * Stores a keyed hash of an erased address with its unsubscribe, its suppression and the topics it had left. Without
 * SECRET_KEY, the address can't be recognised. DECISIONS: Suppression.
 */
import type { At, Tx } from '../../postgres/pool.ts'
import type { Secrets } from '../../process/secrets.ts'
import type { Cause } from './effect.ts'
import { deleteErased, type ErasedRow, erasedByHashes, hasErased, keepErased } from './erased.sql.ts'

type InitialState = {
  status: 'subscribed' | 'unsubscribed'
  suppression: null
  /** Topics that the contact doesn't get, even if it is created with them. */
  left_topic_ids: readonly string[]
}

export const NEW_CONTACT: InitialState = { status: 'subscribed', suppression: null, left_topic_ids: [] }

type Kept = Pick<ErasedRow, 'status' | 'suppression' | 'cause' | 'left_topic_ids'>

const hashed = (teamId: string, identity: string): Buffer => Buffer.from(`${teamId}\0${identity}`)

/** Returns the hash of an address in a team, made with the current key. */
export const erasureHash = (secrets: Pick<Secrets, 'sign'>, teamId: string, identity: string): Buffer =>
  secrets.sign('erasure', hashed(teamId, identity), 32)

/** Returns the stored states of these addresses, by identity. */
async function readKept(
  tx: Tx,
  secrets: Pick<Secrets, 'signatures'>,
  teamId: string,
  identities: readonly string[],
): Promise<ReadonlyMap<string, Kept>> {
  if (identities.length === 0 || !(await hasErased(tx, teamId))) return new Map()
  const byHash = new Map(
    identities.flatMap((identity) =>
      secrets
        .signatures('erasure', hashed(teamId, identity), 32)
        .map((hash) => [hash.toString('hex'), identity] as const),
    ),
  )
  const rows = await erasedByHashes(
    tx,
    teamId,
    [...byHash.keys()].map((hex) => Buffer.from(hex, 'hex')),
  )
  const kept = new Map<string, Kept>()
  // An address can be stored under both the current and the previous key. The latest state that isn't
  // `subscribed` counts, and left topics are combined.
  for (const { hash, left_topic_ids, ...state } of rows) {
    const identity = byHash.get(hash.toString('hex')) ?? ''
    const before = kept.get(identity) ?? { ...NEW_CONTACT, cause: null }
    const left = [...new Set([...before.left_topic_ids, ...left_topic_ids])]
    kept.set(identity, { ...(state.status === 'subscribed' ? before : state), left_topic_ids: left })
  }
  return kept
}

/** Returns the initial states of new contacts. Identities that aren't in the map start as `NEW_CONTACT`. */
export async function initialStates(
  tx: Tx,
  secrets: Pick<Secrets, 'signatures'>,
  teamId: string,
  identities: readonly string[],
): Promise<ReadonlyMap<string, InitialState>> {
  const kept = await readKept(tx, secrets, teamId, identities)
  return new Map(
    [...kept].map(([identity, { status, left_topic_ids }]) => [
      identity,
      { ...NEW_CONTACT, status: status === 'unsubscribed' ? status : 'subscribed', left_topic_ids },
    ]),
  )
}

/** Returns the addresses that were suppressed when they were erased, with their causes. */
export async function erasedSuppressions(
  tx: Tx,
  secrets: Pick<Secrets, 'signatures'>,
  teamId: string,
  identities: readonly string[],
): Promise<ReadonlyMap<string, Cause>> {
  const kept = await readKept(tx, secrets, teamId, identities)
  return new Map(
    [...kept].flatMap(([identity, { suppression, cause }]) => {
      if (suppression === null) return []
      // Version 0.1.0 stored no cause.
      return [[identity, cause ?? (suppression === 'complained' ? 'complaint' : 'soft_bounces')] as const]
    }),
  )
}

type Changing = At & { secrets: Pick<Secrets, 'sign' | 'signatures'> }

async function rewrite({ tx, now, secrets }: Changing, teamId: string, identity: string, kept: Kept) {
  await deleteErased(tx, teamId, secrets.signatures('erasure', hashed(teamId, identity), 32))
  if (kept.status === 'subscribed' && kept.left_topic_ids.length === 0) return
  await keepErased(tx, teamId, { hash: erasureHash(secrets, teamId, identity), ...kept }, now)
}

/**
 * Deletes the stored unsubscribe of an address whose contact is resubscribed. A suppression and left topics stay,
 * except `chosen` ones.
 */
export async function clearOptOuts(
  at: Changing,
  teamId: string,
  identity: string,
  { chosen = [] }: { chosen?: readonly string[] } = {},
): Promise<void> {
  const kept = (await readKept(at.tx, at.secrets, teamId, [identity])).get(identity)
  if (!kept) return
  const left_topic_ids = kept.left_topic_ids.filter((topic) => !chosen.includes(topic))
  const { suppression, cause } = kept
  await rewrite(at, teamId, identity, {
    status: suppression ?? 'subscribed',
    suppression,
    cause,
    left_topic_ids,
  })
}

/** Deletes the stored suppressions of addresses. @returns the addresses that were suppressed. */
export async function endErasedSuppressions(at: Changing, teamId: string, identities: readonly string[]) {
  const kept = await readKept(at.tx, at.secrets, teamId, identities)
  const ended = [...kept].filter(([, { suppression }]) => suppression !== null)
  for (const [identity, { status, left_topic_ids }] of ended) {
    const wish = status === 'unsubscribed' ? status : 'subscribed'
    await rewrite(at, teamId, identity, { status: wish, suppression: null, cause: null, left_topic_ids })
  }
  return ended.map(([identity]) => identity)
}
