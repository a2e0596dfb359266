-- deleteEvents
with old as (
  select ctid as place
  from email_events e
  where team_id = $1
    and email_id >= $2
    and email_id < $3
    and not exists (
    select
    from email_states m
    where m.team_id = $4
      and m.id = e.email_id
      and not (not unfinished and due_at is null and coalesce(scheduled_at < to_timestamp($5), true))
  )
  order by email_id
  limit $6
), gone as (
  delete from email_events e using old
  where e.ctid = old.place
  returning e.email_id as id
)
select count(*) as found, max(id::text) as last
from gone

-- deleteRequests
with old as materialized (
  select id
  from whatsapp_requests r
  where team_id = $1
    and id > $2
    and id < $3
    and not exists (
    select
    from whatsapp_messages m
    where m.team_id = $4
      and m.request_id = r.id
  )
  order by id
  limit $5
  for update skip locked
), gone as (
  delete from whatsapp_requests
  where team_id = $6
    and id in (
    select id
    from old
  )
)
select count(*) as found, max(id::text) as last
from old

-- deleteSenderEvents
with old as (
  select ctid as place
  from sender_events
  where id < $1
  limit $2
), gone as (
  delete from sender_events e using old
  where e.ctid = old.place
  returning e.id
)
select count(*) as found, max(id::text) as last
from gone

-- deleteWithEvents
with old as materialized (
  select id
  from webhook_messages
  where team_id = $1
    and id > $2
    and id < $3
    and status = $4
  order by id
  limit $5
  for update skip locked
), gone as (
  delete from webhook_messages
  where team_id = $6
    and id in (
    select id
    from old
  )
), timeline as (
  delete from webhook_events
  where team_id = $7
    and message_id in (
    select id
    from old
  )
)
select count(*) as found, max(id::text) as last
from old

-- deleteWithEvents
with old as materialized (
  select id
  from whatsapp_messages
  where team_id = $1
    and id > $2
    and id < $3
    and (not unfinished and due_at is null and coalesce(scheduled_at < to_timestamp($4), true))
    and created_at < (
    select case when period_end > now() then period_start else period_end end
    from allowances
    where team_id = $5
  )
  order by id
  limit $6
  for update skip locked
), gone as (
  delete from whatsapp_messages
  where team_id = $7
    and id in (
    select id
    from old
  )
), timeline as (
  delete from whatsapp_events
  where team_id = $8
    and message_id in (
    select id
    from old
  )
), request as (
  delete from whatsapp_requests r
  where team_id = $9
    and id in (
    select request_id
    from whatsapp_messages
    where team_id = $10
      and id in (
      select id
      from old
    )
  )
    and not exists (
    select
    from whatsapp_messages m
    where m.team_id = $11
      and m.request_id = r.id
      and m.id not in (
      select id
      from old
    )
  )
)
select count(*) as found, max(id::text) as last
from old

-- emptiedUntil
select done_until
from upkeep
where kind = 'bodies'

-- emptyEmails
with candidate as materialized (
  select team_id, id,
    row_number() over (partition by (ctid::text::point)[0] order by coalesce(pg_column_size(html),
    0) + coalesce(pg_column_size(body_text), 0) + coalesce(pg_column_size(variables),
    0) + coalesce(pg_column_size(headers), 0) desc) as of_page
  from (
    select e.team_id, e.id, e.ctid, e.html, e.body_text, e.variables, e.headers
    from accepted_emails e
    where e.id > $1
      and e.id <= $2
      and (e.html <> '' or e.body_text <> '' or e.variables::text <> '{}' or e.headers is not null)
      and exists (
      select
      from email_states s
      where s.team_id = e.team_id
        and s.id = e.id
        and not s.unfinished
        and s.scheduled_at is null
    )
    order by e.id
    limit $3
  ) e
), old as materialized (
  select team_id, id
  from email_states
  where (team_id, id) in (
    select team_id, id
    from candidate
    where of_page <= $4
  )
    and not unfinished
  order by team_id, id
  for no key update skip locked
), emptied as (
  update accepted_emails e
  set html = case when e.html is not null then '' end, body_text = case
    when e.body_text is not null then '' end, variables = case
    when e.variables is not null then '{}'::json end, headers = null
  from old
  where e.team_id = old.team_id
    and e.id = old.id
)
select count(*) as found, max(id::text) as last, (
  select count(*)
  from old
) as done
from candidate

-- emptyEmailsById
with old as materialized (
  select team_id, id
  from email_states
  where (team_id, id) in (
    select *
    from unnest($1::uuid[], $2::uuid[]) as ref (team_id, id)
  )
    and not unfinished
    and due_at is null
  order by team_id, id
  for no key update skip locked
), emptied as (
  update accepted_emails e
  set html = case when e.html is not null then '' end, body_text = case
    when e.body_text is not null then '' end, variables = case
    when e.variables is not null then '{}'::json end, headers = null
  from old
  where e.team_id = old.team_id
    and e.id = old.id
    and (e.html <> '' or e.body_text <> '' or e.variables::text <> '{}' or e.headers is not null)
  returning 1
)
select count(*) as done
from emptied

-- emptyThese
with old as materialized (
  select team_id, id
  from whatsapp_requests r
  where (team_id, id) in (
    select *
    from unnest($1::uuid[], $2::uuid[]) as ref (team_id, id)
  )
    and parameters::text <> '{}'
    and not exists (
    select
    from whatsapp_messages m
    where m.team_id = r.team_id
      and m.request_id = r.id
      and not (not unfinished and due_at is null and coalesce(scheduled_at < to_timestamp($3), true))
  )
  order by team_id, id
  limit $4
  for no key update skip locked
), emptied as (
  update whatsapp_requests r
  set parameters = '{}'::json
  from old
  where r.team_id = old.team_id
    and r.id = old.id
)
select count(*) as found, max(id::text) as last
from old

-- emptyThese
with old as materialized (
  select team_id, id
  from whatsapp_requests r
  where team_id = $1
    and id > $2
    and id < $3
    and parameters::text <> '{}'
    and not exists (
    select
    from whatsapp_messages m
    where m.team_id = r.team_id
      and m.request_id = r.id
      and not (not unfinished and due_at is null and coalesce(scheduled_at < to_timestamp($4), true))
  )
  order by team_id, id
  limit $5
  for no key update skip locked
), emptied as (
  update whatsapp_requests r
  set parameters = '{}'::json
  from old
  where r.team_id = old.team_id
    and r.id = old.id
)
select count(*) as found, max(id::text) as last
from old

-- firstTeamAt
select min(created_at)::text as since
from teams

-- recordEmptied
insert into upkeep (kind, done_until)
values ('bodies', to_timestamp($1))
on conflict (kind) do
update
set done_until = excluded.done_until

-- scheduledBefore
select team_id, id, null::uuid as request_id, scheduled_at::text as at
from email_states
where scheduled_at is not null
  and (scheduled_at, id) > ($1::timestamptz, $2::uuid)
  and (not unfinished and due_at is null and coalesce(scheduled_at < to_timestamp($3), true))
  and scheduled_at < to_timestamp($4)
order by scheduled_at, id
limit $5

-- scheduledBefore
select team_id, id, request_id as request_id, scheduled_at::text as at
from whatsapp_messages
where scheduled_at is not null
  and (scheduled_at, id) > ($1::timestamptz, $2::uuid)
  and (not unfinished and due_at is null and coalesce(scheduled_at < to_timestamp($3), true))
  and scheduled_at < to_timestamp($4)
order by scheduled_at, id
limit $5

-- teamsAndWhetherTheyHave
select t.id, one.has_some is not null as has_some
from (
  select id
  from teams
  where id > $1
  order by id
  limit $2
) t
left join lateral (
  select true as has_some
  from email_states
  where team_id = t.id
    and $3 >= $4
    and $5 < $6
  limit 1
) one on true
order by t.id
