-- broadcastStates
select s.state, count(b.id) as broadcasts
from (values ('sending'), ('paused'), ('braked')) as s (state)
left join broadcasts b on b.state in ('sending', 'paused')
  and s.state = case when b.state_reason is null then b.state else 'braked' end
group by s.state
order by s.state

-- deleteProcess
delete from processes
where id = $1

-- deleteSilentProcesses
delete from processes
where seen_at < now() - make_interval(secs => $1)

-- fleetCounters
select figure, labels,
values
from counters
order by figure, labels

-- liveProcesses
select id, kind, host, pid, queues, senders, completed, gauges, started_at, seen_at, greatest(0,
  extract(epoch from now() - seen_at)) as silent_seconds
from processes
where seen_at > now() - make_interval(secs => $1)
order by started_at, id

-- numberQualities
select name, coalesce(quality, 'UNKNOWN') as quality
from whatsapp_numbers
where name <> 'default'
order by name

-- openReports
select s.state, count(r.id) as reports, coalesce(greatest(0, extract(epoch from now() - min(r.received_at))),
  0) as oldest_seconds
from (values ('pending'), ('parked')) as s (state)
left join reports r on r.state = s.state
  and r.state <> 'done'
group by s.state
order by s.state

-- queuedByAge
with waiting as (
  select channel, width_bucket(extract(epoch from now() - since)::float8, $1::float8[]) as place,
    count(*) as n
  from ((
    select $2::text as channel, created_at as since
    from email_states
    where unfinished
      and scheduled_at is null
    order by created_at
    limit $3
  ) union all (
    select $4::text as channel, greatest(created_at, scheduled_at) as since
    from email_states
    where unfinished
      and scheduled_at is not null
    order by scheduled_at
    limit $5
  ) union all (
    select $6::text as channel, created_at as since
    from whatsapp_messages
    where unfinished
      and scheduled_at is null
    order by created_at
    limit $7
  ) union all (
    select $8::text as channel, greatest(created_at, scheduled_at) as since
    from whatsapp_messages
    where unfinished
      and scheduled_at is not null
    order by scheduled_at
    limit $9
  )) oldest
  group by channel, place
)
select c.channel, a.age, coalesce(sum(w.n), 0)::bigint as messages
from unnest($10::text[]) as c (channel)
cross join unnest($11::float8[])
with ordinality as a (age, place)
left join waiting w on w.channel = c.channel
  and w.place >= a.place
group by c.channel, a.age
order by c.channel, a.age

-- scheduledMessages
select $1::text as channel, count(*) as messages
from email_states
where due_at is not null
union all
select $2::text as channel, count(*) as messages
from whatsapp_messages
where due_at is not null
order by channel

-- senderStates
select key, (
  select name
  from whatsapp_numbers
  where key = 'whatsapp:' || phone_number_id
) as name, (troubles > 0 or coalesce(paused_until > now(), false))::int as paused, (slowed_at is not null
  and slowed_at > now() - interval '10 minutes')::int as slowed, (tokens + rate * greatest(0,
  extract(epoch from now() - refilled_at)) < 1)::int as full
from senders
where not starts_with(key, $1)
order by key

-- storeSignOfLife
with life as (
  insert into processes (id, kind, host, pid, queues, senders, completed, gauges, started_at, seen_at,
    version)
  values ($1, $2, $3, $4, $5::text[], $6::json, $7::json, $8::json, to_timestamp($9), now(), $10)
  on conflict (id) do
  update
  set senders = excluded.senders, completed = excluded.completed, gauges = excluded.gauges,
    seen_at = excluded.seen_at
)
insert into counters (figure, labels, values)
select figure, labels,
values
from jsonb_to_recordset($11::jsonb) as a (figure text, labels text, values double precision[])
order by figure, labels
on conflict (figure, labels) do
update
set
values = array(
  select coalesce(stored, 0) + coalesce(added, 0)
  from unnest(counters.values, excluded.values)
  with ordinality as v (stored, added, at)
  order by at
)
