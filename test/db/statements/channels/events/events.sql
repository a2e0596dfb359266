-- insertEvents
insert into email_events as stored (team_id, email_id, event_key, kind, occurred_at, detail, recipient,
  contact_id, effect)
select team_id, id, decode(event_key, 'hex'), kind, occurred_at, detail, recipient, contact_id, effect
from unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::timestamptz[], $6::text[], $7::text[],
  $8::uuid[], $9::text[]) as e (team_id, id, event_key, kind, occurred_at, detail, recipient, contact_id,
  effect)
on conflict do nothing
returning team_id, email_id as id, encode(event_key, 'hex') as digest, (exists (
  select
  from webhook_endpoints w
  where w.team_id = stored.team_id
    and (w.state = 'enabled' or w.disabled_at > now() - $10 * interval '1 day')
)) as has_listeners
