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
