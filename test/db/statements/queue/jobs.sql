-- attemptsUnderWay
select j.id
from pgboss.job j
join unnest($1::uuid[], $2::int4[]) as a (id, "retryCount") using (id)
where j.name = $3
  and j.retry_count = a."retryCount"
  and j.state = 'active'

-- bringForward
update pgboss.job
set start_after = now()
where name = $1
  and state = 'created'
  and start_after > now()
  and id in (
  select e.id
  from email_states e
  where e.team_id = $2
    and e.broadcast_id = $3
    and e.unfinished
)

-- bringForward
update pgboss.job
set start_after = now()
where name = $1
  and state = 'created'
  and start_after > now()
  and id in ($2)

-- delayJobs
update pgboss.job j
set start_after = now() + d.seconds * interval '1 second'
from unnest($1::uuid[], $2::float8[]) as d (id, seconds)
where j.name = $3
  and j.id = d.id
  and j.state = 'created'

-- deleteDoneJobs
delete from pgboss.job
where name = 'x'
  and id = any($1::uuid[])
  and retry_count = ($2::int4[])[array_position($3::uuid[], id)]
  and state::text = 'active'

-- deleteEndedJobs
delete from pgboss.job
where name = $1
  and id = any($2::uuid[])
  and state > 'active'

-- deleteIdleJobs
delete from pgboss.job
where name = $1
  and id = any($2::uuid[])
  and state <> 'active'

-- deleteIdleJobs
delete from pgboss.job
where name = $1
  and source_id = any($2::uuid[])
  and state < 'active'

-- dueTimes
select id, start_after as at
from pgboss.job
where name = $1
  and id = any($2::uuid[])
  and state < 'active'

-- exhaustRetries
update pgboss.job j
set retry_limit = j.retry_count
from unnest($1::uuid[], $2::int4[]) as g (id, "retryCount")
where j.name = $3
  and j.id = g.id
  and j.retry_count = g."retryCount"
  and j.state = 'active'

-- jobEnd
select state::text, data ->> 'team_id' as team_id, output
from pgboss.job
where name = $1
  and id = $2

-- keysWithJobs
select distinct key
from unnest($1::text[], $2::text[], $3::text[]) as p (key, job, grouped_by)
where case when p.grouped_by is null then exists (
  select from pgboss.job where name = p.job and state < 'active'
) else exists (
  select from pgboss.job where name = p.job and state < 'active' and group_id = p.grouped_by
) end

-- oftenLost
select id
from pgboss.job
where name = $1
  and id = any($2::uuid[])
  and retry_count - (retry_limit - $3::int) >= $4

-- openJob
select state = 'active' as active, start_after as at, false as dead
from pgboss.job
where name = $1
  and id = $2
  and state <= 'active'
union all
select state = 'active', start_after, true
from pgboss.job
where name = $3
  and source_id = $4
  and state <= 'active'
order by dead
limit 1

-- openJobsBefore
select id
from pgboss.job
where name = 'x'
  and id < $1
  and state in ('created', 'active')
  and retry_count = 0
  and data ->> 'team_id' = $2
order by id

-- postponeJobs
update pgboss.job j
set priority = coalesce(p.priority, j.priority), state = case when p.tried then 'retry'
  else 'created' end::pgboss.job_state, start_after = now() + p.seconds * interval '1 second',
  started_on = case when p.tried then j.started_on end, retry_count = j.retry_count + case when p.tried then 0
  else 1 end, retry_limit = j.retry_limit + 1, keep_until = now() + $1 * interval '1 second'
from unnest($2::uuid[], $3::int4[], $4::bool[], $5::float8[], $6::int4[]) as p (id, attempt, tried, seconds,
  priority)
where j.name = $7
  and j.id = p.id
  and j.retry_count = p.attempt
  and j.state = 'active'

-- queueStatus
select $1::text as name, coalesce((
  select failed_count
  from pgboss.queue
  where name = $2
), 0) as failed, (
  select count(*)
  from pgboss.job
  where name = $3
    and state = 'active'
) as active, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $4
      and state < 'active'
      and not blocked
      and start_after <= now()
    order by start_after
    limit $5
  ) j
) as ready, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $6
      and state < 'active'
      and not blocked
      and start_after > now()
    order by start_after
    limit $7
  ) j
) as deferred, (
  select floor(extract(epoch from now() - start_after))
  from pgboss.job
  where name = $8
    and state < 'active'
    and not blocked
    and start_after <= now()
  order by start_after
  limit 1
) as oldest_ready_seconds, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $9
      and state < 'active'
      and not blocked
    order by start_after
    limit $10
  ) j
) as dead
union all
select $11::text as name, coalesce((
  select failed_count
  from pgboss.queue
  where name = $12
), 0) as failed, (
  select count(*)
  from pgboss.job
  where name = $13
    and state = 'active'
) as active, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $14
      and state < 'active'
      and not blocked
      and start_after <= now()
    order by start_after
    limit $15
  ) j
) as ready, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $16
      and state < 'active'
      and not blocked
      and start_after > now()
    order by start_after
    limit $17
  ) j
) as deferred, (
  select floor(extract(epoch from now() - start_after))
  from pgboss.job
  where name = $18
    and state < 'active'
    and not blocked
    and start_after <= now()
  order by start_after
  limit 1
) as oldest_ready_seconds, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $19
      and state < 'active'
      and not blocked
    order by start_after
    limit $20
  ) j
) as dead
union all
select $21::text as name, coalesce((
  select failed_count
  from pgboss.queue
  where name = $22
), 0) as failed, (
  select count(*)
  from pgboss.job
  where name = $23
    and state = 'active'
) as active, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $24
      and state < 'active'
      and not blocked
      and start_after <= now()
    order by start_after
    limit $25
  ) j
) as ready, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $26
      and state < 'active'
      and not blocked
      and start_after > now()
    order by start_after
    limit $27
  ) j
) as deferred, (
  select floor(extract(epoch from now() - start_after))
  from pgboss.job
  where name = $28
    and state < 'active'
    and not blocked
    and start_after <= now()
  order by start_after
  limit 1
) as oldest_ready_seconds, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $29
      and state < 'active'
      and not blocked
    order by start_after
    limit $30
  ) j
) as dead
union all
select $31::text as name, coalesce((
  select failed_count
  from pgboss.queue
  where name = $32
), 0) as failed, (
  select count(*)
  from pgboss.job
  where name = $33
    and state = 'active'
) as active, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $34
      and state < 'active'
      and not blocked
      and start_after <= now()
    order by start_after
    limit $35
  ) j
) as ready, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $36
      and state < 'active'
      and not blocked
      and start_after > now()
    order by start_after
    limit $37
  ) j
) as deferred, (
  select floor(extract(epoch from now() - start_after))
  from pgboss.job
  where name = $38
    and state < 'active'
    and not blocked
    and start_after <= now()
  order by start_after
  limit 1
) as oldest_ready_seconds, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $39
      and state < 'active'
      and not blocked
    order by start_after
    limit $40
  ) j
) as dead
union all
select $41::text as name, coalesce((
  select failed_count
  from pgboss.queue
  where name = $42
), 0) as failed, (
  select count(*)
  from pgboss.job
  where name = $43
    and state = 'active'
) as active, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $44
      and state < 'active'
      and not blocked
      and start_after <= now()
    order by start_after
    limit $45
  ) j
) as ready, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $46
      and state < 'active'
      and not blocked
      and start_after > now()
    order by start_after
    limit $47
  ) j
) as deferred, (
  select floor(extract(epoch from now() - start_after))
  from pgboss.job
  where name = $48
    and state < 'active'
    and not blocked
    and start_after <= now()
  order by start_after
  limit 1
) as oldest_ready_seconds, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $49
      and state < 'active'
      and not blocked
    order by start_after
    limit $50
  ) j
) as dead
union all
select $51::text as name, coalesce((
  select failed_count
  from pgboss.queue
  where name = $52
), 0) as failed, (
  select count(*)
  from pgboss.job
  where name = $53
    and state = 'active'
) as active, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $54
      and state < 'active'
      and not blocked
      and start_after <= now()
    order by start_after
    limit $55
  ) j
) as ready, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $56
      and state < 'active'
      and not blocked
      and start_after > now()
    order by start_after
    limit $57
  ) j
) as deferred, (
  select floor(extract(epoch from now() - start_after))
  from pgboss.job
  where name = $58
    and state < 'active'
    and not blocked
    and start_after <= now()
  order by start_after
  limit 1
) as oldest_ready_seconds, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $59
      and state < 'active'
      and not blocked
    order by start_after
    limit $60
  ) j
) as dead
union all
select $61::text as name, coalesce((
  select failed_count
  from pgboss.queue
  where name = $62
), 0) as failed, (
  select count(*)
  from pgboss.job
  where name = $63
    and state = 'active'
) as active, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $64
      and state < 'active'
      and not blocked
      and start_after <= now()
    order by start_after
    limit $65
  ) j
) as ready, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $66
      and state < 'active'
      and not blocked
      and start_after > now()
    order by start_after
    limit $67
  ) j
) as deferred, (
  select floor(extract(epoch from now() - start_after))
  from pgboss.job
  where name = $68
    and state < 'active'
    and not blocked
    and start_after <= now()
  order by start_after
  limit 1
) as oldest_ready_seconds, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $69
      and state < 'active'
      and not blocked
    order by start_after
    limit $70
  ) j
) as dead
union all
select $71::text as name, coalesce((
  select failed_count
  from pgboss.queue
  where name = $72
), 0) as failed, (
  select count(*)
  from pgboss.job
  where name = $73
    and state = 'active'
) as active, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $74
      and state < 'active'
      and not blocked
      and start_after <= now()
    order by start_after
    limit $75
  ) j
) as ready, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $76
      and state < 'active'
      and not blocked
      and start_after > now()
    order by start_after
    limit $77
  ) j
) as deferred, (
  select floor(extract(epoch from now() - start_after))
  from pgboss.job
  where name = $78
    and state < 'active'
    and not blocked
    and start_after <= now()
  order by start_after
  limit 1
) as oldest_ready_seconds, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $79
      and state < 'active'
      and not blocked
    order by start_after
    limit $80
  ) j
) as dead
union all
select $81::text as name, coalesce((
  select failed_count
  from pgboss.queue
  where name = $82
), 0) as failed, (
  select count(*)
  from pgboss.job
  where name = $83
    and state = 'active'
) as active, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $84
      and state < 'active'
      and not blocked
      and start_after <= now()
    order by start_after
    limit $85
  ) j
) as ready, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $86
      and state < 'active'
      and not blocked
      and start_after > now()
    order by start_after
    limit $87
  ) j
) as deferred, (
  select floor(extract(epoch from now() - start_after))
  from pgboss.job
  where name = $88
    and state < 'active'
    and not blocked
    and start_after <= now()
  order by start_after
  limit 1
) as oldest_ready_seconds, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $89
      and state < 'active'
      and not blocked
    order by start_after
    limit $90
  ) j
) as dead
union all
select $91::text as name, coalesce((
  select failed_count
  from pgboss.queue
  where name = $92
), 0) as failed, (
  select count(*)
  from pgboss.job
  where name = $93
    and state = 'active'
) as active, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $94
      and state < 'active'
      and not blocked
      and start_after <= now()
    order by start_after
    limit $95
  ) j
) as ready, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $96
      and state < 'active'
      and not blocked
      and start_after > now()
    order by start_after
    limit $97
  ) j
) as deferred, (
  select floor(extract(epoch from now() - start_after))
  from pgboss.job
  where name = $98
    and state < 'active'
    and not blocked
    and start_after <= now()
  order by start_after
  limit 1
) as oldest_ready_seconds, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $99
      and state < 'active'
      and not blocked
    order by start_after
    limit $100
  ) j
) as dead
union all
select $101::text as name, coalesce((
  select failed_count
  from pgboss.queue
  where name = $102
), 0) as failed, (
  select count(*)
  from pgboss.job
  where name = $103
    and state = 'active'
) as active, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $104
      and state < 'active'
      and not blocked
      and start_after <= now()
    order by start_after
    limit $105
  ) j
) as ready, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $106
      and state < 'active'
      and not blocked
      and start_after > now()
    order by start_after
    limit $107
  ) j
) as deferred, (
  select floor(extract(epoch from now() - start_after))
  from pgboss.job
  where name = $108
    and state < 'active'
    and not blocked
    and start_after <= now()
  order by start_after
  limit 1
) as oldest_ready_seconds, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $109
      and state < 'active'
      and not blocked
    order by start_after
    limit $110
  ) j
) as dead
union all
select $111::text as name, coalesce((
  select failed_count
  from pgboss.queue
  where name = $112
), 0) as failed, (
  select count(*)
  from pgboss.job
  where name = $113
    and state = 'active'
) as active, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $114
      and state < 'active'
      and not blocked
      and start_after <= now()
    order by start_after
    limit $115
  ) j
) as ready, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $116
      and state < 'active'
      and not blocked
      and start_after > now()
    order by start_after
    limit $117
  ) j
) as deferred, (
  select floor(extract(epoch from now() - start_after))
  from pgboss.job
  where name = $118
    and state < 'active'
    and not blocked
    and start_after <= now()
  order by start_after
  limit 1
) as oldest_ready_seconds, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $119
      and state < 'active'
      and not blocked
    order by start_after
    limit $120
  ) j
) as dead
union all
select $121::text as name, coalesce((
  select failed_count
  from pgboss.queue
  where name = $122
), 0) as failed, (
  select count(*)
  from pgboss.job
  where name = $123
    and state = 'active'
) as active, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $124
      and state < 'active'
      and not blocked
      and start_after <= now()
    order by start_after
    limit $125
  ) j
) as ready, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $126
      and state < 'active'
      and not blocked
      and start_after > now()
    order by start_after
    limit $127
  ) j
) as deferred, (
  select floor(extract(epoch from now() - start_after))
  from pgboss.job
  where name = $128
    and state < 'active'
    and not blocked
    and start_after <= now()
  order by start_after
  limit 1
) as oldest_ready_seconds, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $129
      and state < 'active'
      and not blocked
    order by start_after
    limit $130
  ) j
) as dead
union all
select $131::text as name, coalesce((
  select failed_count
  from pgboss.queue
  where name = $132
), 0) as failed, (
  select count(*)
  from pgboss.job
  where name = $133
    and state = 'active'
) as active, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $134
      and state < 'active'
      and not blocked
      and start_after <= now()
    order by start_after
    limit $135
  ) j
) as ready, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $136
      and state < 'active'
      and not blocked
      and start_after > now()
    order by start_after
    limit $137
  ) j
) as deferred, (
  select floor(extract(epoch from now() - start_after))
  from pgboss.job
  where name = $138
    and state < 'active'
    and not blocked
    and start_after <= now()
  order by start_after
  limit 1
) as oldest_ready_seconds, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $139
      and state < 'active'
      and not blocked
    order by start_after
    limit $140
  ) j
) as dead
union all
select $141::text as name, coalesce((
  select failed_count
  from pgboss.queue
  where name = $142
), 0) as failed, (
  select count(*)
  from pgboss.job
  where name = $143
    and state = 'active'
) as active, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $144
      and state < 'active'
      and not blocked
      and start_after <= now()
    order by start_after
    limit $145
  ) j
) as ready, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $146
      and state < 'active'
      and not blocked
      and start_after > now()
    order by start_after
    limit $147
  ) j
) as deferred, (
  select floor(extract(epoch from now() - start_after))
  from pgboss.job
  where name = $148
    and state < 'active'
    and not blocked
    and start_after <= now()
  order by start_after
  limit 1
) as oldest_ready_seconds, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $149
      and state < 'active'
      and not blocked
    order by start_after
    limit $150
  ) j
) as dead
union all
select $151::text as name, coalesce((
  select failed_count
  from pgboss.queue
  where name = $152
), 0) as failed, (
  select count(*)
  from pgboss.job
  where name = $153
    and state = 'active'
) as active, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $154
      and state < 'active'
      and not blocked
      and start_after <= now()
    order by start_after
    limit $155
  ) j
) as ready, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $156
      and state < 'active'
      and not blocked
      and start_after > now()
    order by start_after
    limit $157
  ) j
) as deferred, (
  select floor(extract(epoch from now() - start_after))
  from pgboss.job
  where name = $158
    and state < 'active'
    and not blocked
    and start_after <= now()
  order by start_after
  limit 1
) as oldest_ready_seconds, (
  select count(*)
  from (
    select
    from pgboss.job
    where name = $159
      and state < 'active'
      and not blocked
    order by start_after
    limit $160
  ) j
) as dead

-- queueStatus
select set_config('statement_timeout', $1, true)

-- teamsWaiting
select data ->> 'team_id' as team_id, count(*) as jobs, min(start_after) as due_at
from (
  select data, start_after
  from pgboss.job
  where name = $1
    and state < 'active'
    and not blocked
  order by start_after
  limit $2
) waiting
where data ->> 'team_id' is not null
group by 1
order by jobs desc, due_at
limit $3

-- waitingOfTeams
select count(*) as jobs, count(distinct data ->> 'team_id') as teams
from (
  select data
  from pgboss.job
  where name = any($1::text[])
    and state < 'active'
    and group_id = $2
  limit $3
) waiting
