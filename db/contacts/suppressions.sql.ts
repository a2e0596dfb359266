/** The queries behind apply-events.ts: contacts found, locked and moved for what reports say of them. */
import { sql } from 'slonik'
import { object, string } from 'yup'
import type { Tx } from '../postgres/pool.ts'
import { touchedAt } from './contacts.sql.ts'

export type ContactRef = { team_id: string; contact_id: string }
export type IdentityRef = { team_id: string; identity: string }

const lockedRow = object({
  team_id: string().defined(),
  identity: string().defined(),
  contact_id: string().defined(),
  suppression: string().defined().nullable(),
  status_before: string().defined().nullable(),
})

/** The contacts of these identities, locked in one order, so that transactions over the same rows cannot deadlock. */
export async function lockContacts(tx: Tx, refs: readonly IdentityRef[]) {
  const tuples = refs.map(({ team_id, identity }) => [team_id, identity])
  return tx.any(sql.prepared('lock_contacts', lockedRow)`
    select team_id, identity, id as contact_id, suppression, status_before from contacts
    where (team_id, identity) in (select * from ${sql.unnest(tuples, ['uuid', 'text'])} as ref (team_id, identity))
    order by team_id, identity for no key update`)
}

const tuplesOf = (refs: readonly ContactRef[]) =>
  sql.unnest(
    refs.map(({ team_id, contact_id }) => [team_id, contact_id]),
    ['uuid', 'uuid'],
  )

/** A permanent bounce: any state but complained becomes bounced (decisions: delivery reports). */
export async function bounceContacts(tx: Tx, refs: readonly ContactRef[], now: Date): Promise<void> {
  await tx.query(sql.prepared('bounce_contacts', object())`
    update contacts c set
      status = 'bounced', suppression = coalesce(c.suppression, 'bounced'), status_before = null,
      updated_at = ${touchedAt(now)}
    from ${tuplesOf(refs)} as r (team_id, id)
    where c.team_id = r.team_id and c.id = r.id and c.status <> 'complained'
      and (c.status <> 'bounced' or c.suppression is null or c.status_before is not null)`)
}

/** A complaint: any state becomes complained. */
export async function complainContacts(tx: Tx, refs: readonly ContactRef[], now: Date): Promise<void> {
  await tx.query(sql.prepared('complain_contacts', object())`
    update contacts c set
      status = 'complained', suppression = 'complained', status_before = null, updated_at = ${touchedAt(now)}
    from ${tuplesOf(refs)} as r (team_id, id)
    where c.team_id = r.team_id and c.id = r.id
      and (c.status <> 'complained' or c.suppression is distinct from 'complained')`)
}

/**
 * Settles contacts by their soft bounces: one with `most` in a row and no delivery between is bounced; one that was
 * bounced for such a row, which a delivery has broken since, goes back. Others stay as they are.
 */
export async function settleSoftBounces(
  tx: Tx,
  refs: readonly ContactRef[],
  most: number,
  now: Date,
): Promise<void> {
  await tx.query(sql.prepared('settle_soft_bounces', object())`
    with judged as (
      select r.team_id, r.id, exists (
        select from (
          select (
            select max(d.occurred_at) from email_events d
            where d.team_id = r.team_id and d.contact_id = r.id and d.effect = 'delivered'
              and d.occurred_at <= s.occurred_at) as since
          from email_events s where s.team_id = r.team_id and s.contact_id = r.id and s.effect = 'soft') soft
        group by since having count(*) >= ${most}) as over
      from ${tuplesOf(refs)} as r (team_id, id)
    )
    update contacts c set
      status = case when j.over then 'bounced' when c.status = 'bounced' then c.status_before else c.status end,
      suppression = case when j.over then 'bounced' end,
      status_before = case when j.over then c.status end,
      updated_at = ${touchedAt(now)}
    from judged j
    where c.team_id = j.team_id and c.id = j.id
      and (j.over and c.suppression is null and c.status in ('subscribed', 'unsubscribed')
        or not j.over and c.status_before is not null)`)
}
