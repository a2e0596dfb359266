-- contactsToCopy
select c.team_id, c.identity, c.id as contact_id, c.email, c.suppression, c.suppression_cause,
  c.suppressed_softly, c.suppression_copied is not distinct from case when c.suppressed_softly then 'softly'
  else c.suppression end as is_copied
from contacts c
where (case when suppressed_softly then 'softly' else suppression end) is distinct from suppression_copied
order by team_id, id
limit $1
for no key update skip locked

-- lockContacts
select c.team_id, c.identity, c.id as contact_id, c.email, c.suppression, c.suppression_cause,
  c.suppressed_softly, c.suppression_copied is not distinct from case when c.suppressed_softly then 'softly'
  else c.suppression end as is_copied
from contacts c
where (team_id, identity) in (
  select *
  from unnest($1::uuid[], $2::text[]) as ref (team_id, identity)
)
order by team_id, id
for no key update

-- markCopied
update contacts c
set suppression_copied = case when c.suppressed_softly then 'softly' else c.suppression end
where (team_id, identity) in (
  select *
  from unnest($1::uuid[], $2::text[]) as ref (team_id, identity)
)

-- markSuppressed
update contacts c
set status = r.status, suppression = r.suppression, suppressed_softly = r.softly, suppression_cause = r.cause,
  suppression_copied = case when r.softly then 'softly' else r.suppression end, status_before = case
  when c.status in ('subscribed', 'unsubscribed') then c.status else c.status_before end,
  updated_at = greatest(to_timestamp($1), updated_at + interval '1 millisecond')
from unnest($2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::bool[], $7::json[]) as r (team_id, contact_id,
  status, suppression, softly, cause)
where c.team_id = r.team_id
  and c.id = r.contact_id
  and (c.status <> 'complained' or r.status = 'complained')
  and (c.status, c.suppression, c.suppressed_softly) is distinct from (r.status, r.suppression, r.softly)

-- releaseContacts
update contacts c
set status = case when status in ('bounced', 'complained') then coalesce(status_before, 'subscribed')
  else status end, suppression = null, suppression_cause = null, suppression_copied = null,
  suppressed_softly = false, status_before = null, lifted_at = coalesce($1::timestamptz, lifted_at),
  updated_at = greatest(to_timestamp($2), updated_at + interval '1 millisecond')
where (team_id, identity) in (
  select *
  from unnest($3::uuid[], $4::text[]) as ref (team_id, identity)
)
  and suppression is not null
returning c.team_id, c.identity, c.id as contact_id, c.email, (exists (
  select
  from webhook_endpoints w
  where w.team_id = c.team_id
    and (w.state = 'enabled' or w.disabled_at > now() - $5 * interval '1 day')
)) as has_listeners

-- suppressionOf
select c.suppression_cause, greatest(c.lifted_at, s.lifted_at) as lifted_at
from contacts c
left join suppressed_addresses s on s.team_id = c.team_id
  and s.identity = c.identity
where c.team_id = $1
  and c.id = $2
