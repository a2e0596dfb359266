-- countSuppressed
select count(*)::integer as count
from (
  select
  from suppressed_addresses
  where team_id = $1
    and cause is not null
    and bounced_at is not null
  limit $2
) counted

-- countSuppressed
select count(*)::integer as count
from (
  select
  from suppressed_addresses
  where team_id = $1
    and cause is not null
  limit $2
) counted

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
order by since desc, identity desc
limit $2

-- suppressedAmong
select team_id, identity, email, cause, since, email_id, report_id, response, bounced_at, bounce_response
from suppressed_addresses
where (team_id, identity) in (
  select *
  from unnest($1::uuid[], $2::text[]) as ref (team_id, identity)
)
  and cause is not null
