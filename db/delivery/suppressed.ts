/**
 * Leaves out messages whose recipients are all suppressed, in a requeue by filter. Any suppression stops a broadcast's
 * email. A worker checks each email again before it is sent.
 */
import { readSuppressTransactional } from '../accounts/teams/teams.sql.ts'
import { suppressedAmong } from '../audience/suppressions/addresses.sql.ts'
import { findSuppressed, isStopping } from '../audience/suppressions/suppressed.ts'
import type { Deliverable, DeliveryRef } from '../channels/channel.sql.ts'
import { RequestError } from '../errors.ts'
import type { Tx } from '../postgres/pool.ts'
import type { Secrets } from '../process/secrets.ts'
import { recipientIdentity } from '../validation/addressees.ts'
import { suppressibleRecipients } from './requeue.sql.ts'
import { TEXTS } from './texts.ts'

/** `secrets` can be null if the team has no erased addresses. */
type At = { tx: Tx; secrets: Pick<Secrets, 'signatures'> | null }

/** @returns a team's messages with a recipient left, and how many recipients of all are suppressed. */
export async function leaveOutSuppressed(
  { tx, secrets }: At,
  channel: Deliverable,
  teamId: string,
  refs: readonly DeliveryRef[],
): Promise<{ left: readonly DeliveryRef[]; suppressed: number }> {
  if (!channel.suppressible || refs.length === 0) return { left: refs, suppressed: 0 }
  const stops = await readSuppressTransactional(tx, teamId)
  const rows = (await suppressibleRecipients(tx, channel, refs)).map(
    ({ recipients, of_broadcast, ...ref }) => ({
      ref,
      of_broadcast,
      identities: [...new Set((recipients ?? []).map(recipientIdentity))],
    }),
  )
  const all = [...new Set(rows.flatMap(({ identities }) => identities))]
  const found = await findSuppressed(tx, secrets, teamId, all)
  const left: DeliveryRef[] = []
  let suppressed = 0
  for (const { ref, of_broadcast, identities } of rows) {
    const count = identities.filter((identity) => {
      const one = found.get(identity)
      return one !== undefined && (of_broadcast || isStopping(one, stops))
    }).length
    suppressed += count
    if (identities.length === 0 || count < identities.length) left.push(ref)
  }
  return { left, suppressed }
}

/** @throws RequestError invalid_state if it is a broadcast's email to a suppressed address. */
export async function assertNotSuppressed(tx: Tx, channel: Deliverable, ref: DeliveryRef): Promise<void> {
  if (!channel.suppressible) return
  const [email] = await suppressibleRecipients(tx, channel, [ref])
  if (!email?.of_broadcast) return
  const recipients = (email.recipients ?? []).map(recipientIdentity)
  const refs = recipients.map((identity) => ({ team_id: ref.team_id, identity }))
  if ((await suppressedAmong(tx, refs)).length > 0)
    throw new RequestError('invalid_state', TEXTS.broadcastSuppressed)
}
