-- countSuppressed
select count(*)::integer as count
from (
  select
  from suppressed_addresses
  where team_id = $1
    and cause is not null
    and cause = $2
    and bounced_at is not null
    and strpos(lower(response), lower($3)) > 0
    and split_part(identity, '@', 2) = $4
    and date_trunc('milliseconds', since) >= to_timestamp($5)
    and date_trunc('milliseconds', since) <= to_timestamp($6)
    and (
    select id < $7::bigint
      and id <> all($8::int8[])
    from (
      select newest - ((newest - suppressed_addresses.xmin::text::bigint) & 4294967295) as id
      from (
        select greatest(pg_snapshot_xmax(pg_current_snapshot()),
          pg_current_xact_id_if_assigned())::text::bigint as newest
      ) now
    ) version
  )
    and (strpos(lower(email), lower($9)) > 0 or strpos(lower(identity), lower($10)) > 0)
  limit $11
) counted

-- deleteAddress
delete from suppressed_addresses
where team_id = $1
  and identity = $2
returning cause, bounced_at is not null as has_bounced

-- insertAddresses
insert into suppressed_addresses (team_id, identity, email, cause, since, email_id, report_id, response,
  bounced_at, bounce_response)
select team_id, identity, email, cause, since, email_id, report_id, response, bounced_at, bounce_response
from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::uuid[], $7::uuid[],
  $8::text[], $9::timestamptz[], $10::text[]) as a (team_id, identity, email, cause, since, email_id,
  report_id, response, bounced_at, bounce_response)
where team_id in (
  select id
  from teams
)
order by team_id, identity
on conflict do nothing
returning team_id, identity, (exists (
  select
  from webhook_endpoints w
  where w.team_id = suppressed_addresses.team_id
    and (w.state = 'enabled' or w.disabled_at > now() - $11 * interval '1 day')
)) as has_listeners

-- liftAddresses
with held as materialized (
  select team_id, identity
  from suppressed_addresses
  where (team_id, identity) in (
    select *
    from unnest($1::uuid[], $2::text[]) as ref (team_id, identity)
  )
    and cause is not null
  order by team_id, identity
  for no key update
)
update suppressed_addresses s
set cause = null, since = null, email_id = null, report_id = null, response = '', bounced_at = null,
  bounce_response = null, lifted_at = coalesce($3::timestamptz, lifted_at)
from held
where s.team_id = held.team_id
  and s.identity = held.identity
returning s.team_id, s.identity, s.email, (exists (
  select
  from webhook_endpoints w
  where w.team_id = s.team_id
    and (w.state = 'enabled' or w.disabled_at > now() - $4 * interval '1 day')
)) as has_listeners

-- lockAddresses
select team_id, identity, email, cause, since, email_id, report_id, response, bounced_at, bounce_response,
  (exists (
  select
  from webhook_endpoints w
  where w.team_id = s.team_id
    and (w.state = 'enabled' or w.disabled_at > now() - $1 * interval '1 day')
)) as has_listeners
from suppressed_addresses s
where (team_id, identity) in (
  select *
  from unnest($2::uuid[], $3::text[]) as ref (team_id, identity)
)
order by team_id, identity
for no key update

-- lockSoftCounts
select pg_advisory_xact_lock(hashtext('soft_bounces'), key)
from (
  select distinct hashtext(team_id || '/' || identity) as key
  from unnest($1::uuid[], $2::text[]) as ref (team_id, identity)
  order by key
) keys

-- nextSuppressed
select identity
from suppressed_addresses
where team_id = $1
  and identity > $2
  and cause is not null
  and cause = $3
  and bounced_at is not null
  and strpos(lower(response), lower($4)) > 0
  and split_part(identity, '@', 2) = $5
  and date_trunc('milliseconds', since) >= to_timestamp($6)
  and date_trunc('milliseconds', since) <= to_timestamp($7)
  and (
  select id < $8::bigint
    and id <> all($9::int8[])
  from (
    select newest - ((newest - suppressed_addresses.xmin::text::bigint) & 4294967295) as id
    from (
      select greatest(pg_snapshot_xmax(pg_current_snapshot()),
        pg_current_xact_id_if_assigned())::text::bigint as newest
    ) now
  ) version
)
  and (strpos(lower(email), lower($10)) > 0 or strpos(lower(identity), lower($11)) > 0)
order by identity
limit $12

-- softFacts
select r.team_id, r.identity, (extract(epoch from s.since) * 1000)::float8 as since, coalesce(s.cause, case
  when c.suppressed_softly then 'soft_bounces' when c.suppression is not null then 'manual' end) as cause,
  coalesce(t.softs[1:$1::int], '{}') as softs,
  (extract(epoch from t.delivered_at) * 1000)::float8 as delivered_at
from unnest($2::uuid[], $3::text[], $4::text[]) as r (team_id, identity, email)
left join suppressed_addresses s on s.team_id = r.team_id
  and s.identity = r.identity
left join contacts c on c.team_id = r.team_id
  and c.identity = r.identity
cross join lateral (
  select max(v.occurred_at) filter (where v.effect = 'delivered' or v.kind = 'sent' and st.status = 'sent'
    and v.occurred_at < to_timestamp($5) and not exists (
    select
    from email_events d
    where d.team_id = e.team_id
      and d.email_id = e.id
      and d.kind in ('delayed', 'unreadable', 'unsubscribed', 'machine_opened', 'machine_clicked')
  )) as delivered_at,
    array_agg((extract(epoch from v.occurred_at) * 1000)::float8 order by v.occurred_at desc) filter (where v.effect = 'soft' and v.occurred_at > coalesce(greatest(s.lifted_at, c.lifted_at), '-infinity')) as softs
  from (
    select team_id, id, contact_id
    from accepted_emails
    where recipient_identities(to_emails) && array[lower(r.email), r.identity] offset 0
  ) e
  cross join lateral (
    select status
    from email_states
    where team_id = e.team_id
      and id = e.id offset 0
  ) st
  join email_events v on v.team_id = e.team_id
    and v.email_id = e.id
    and (v.effect is not null or v.kind = 'sent')
    and (lower(v.recipient) in (lower(r.email), r.identity) or v.recipient is null and e.contact_id = c.id)
  where e.team_id = r.team_id
) t

-- softlySuppressed
select team_id, identity, email
from suppressed_addresses
where cause = 'soft_bounces'
  and (team_id, identity) > ($1::uuid, $2)
order by team_id, identity
limit $3

-- suppressedAddress
select team_id, identity, email, cause, since, email_id, report_id, response, bounced_at, bounce_response
from suppressed_addresses
where team_id = $1
  and identity = $2
  and cause is not null

-- suppressedAddresses
select id, team_id, identity, email, cause, since, email_id, report_id, response, bounced_at, bounce_response
from suppressed_addresses
where team_id = $1
  and cause is not null
  and (since, identity) < (
  select since, identity
  from suppressed_addresses
  where team_id = $2
    and id = $3
)
order by since desc, identity desc
limit $4

-- suppressedAmong
select team_id, identity, email, cause, since, email_id, report_id, response, bounced_at, bounce_response
from suppressed_addresses
where (team_id, identity) in (
  select *
  from unnest($1::uuid[], $2::text[]) as ref (team_id, identity)
)
  and cause is not null

-- updateAddresses
update suppressed_addresses s
set cause = a.cause, since = a.since, email_id = a.email_id, report_id = a.report_id, response = a.response,
  bounced_at = a.bounced_at, bounce_response = a.bounce_response
from unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::uuid[], $7::uuid[],
  $8::text[], $9::timestamptz[], $10::text[]) as a (team_id, identity, email, cause, since, email_id,
  report_id, response, bounced_at, bounce_response)
where s.team_id = a.team_id
  and s.identity = a.identity
