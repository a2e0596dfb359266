-- advanceBackgroundJob
update background_jobs
set done = $1, total = $2, result = $3, cursor = $4, progressed_at = to_timestamp($5), given = case
  when not $6 then given end, finished_at = case when $7 then to_timestamp($8) end
where id = $9
returning id, team_id, kind, done, total, result, fault, begun_by, begun_at, progressed_at, finished_at

-- aimsOf
select id, given
from background_jobs
where id = any($1::uuid[])
  and given is not null

-- backgroundJobById
select id, team_id, kind, done, total, result, fault, begun_by, begun_at, progressed_at, finished_at
from background_jobs
where id = $1
  and ($2::uuid is null or team_id = $3)

-- deleteBackgroundJobs
delete from background_jobs
where finished_at is not null
  and begun_at < to_timestamp($1)

-- endBackgroundJob
update background_jobs
set result = $1, cursor = null, given = null, progressed_at = to_timestamp($2), finished_at = to_timestamp($3)
where id = $4
returning id, team_id, kind, done, total, result, fault, begun_by, begun_at, progressed_at, finished_at

-- failBackgroundJob
update background_jobs
set fault = $1, cursor = null, given = null, progressed_at = to_timestamp($2), finished_at = to_timestamp($3)
where id = $4
  and finished_at is null

-- insertBackgroundJob
insert into background_jobs (id, team_id, kind, given, total, begun_by, begun_at, progressed_at)
values ($1, $2, $3, $4, $5, $6, to_timestamp($7), to_timestamp($8))

-- latestBackgroundJobs
select id, team_id, kind, done, total, result, fault, begun_by, begun_at, progressed_at, finished_at
from background_jobs
where team_id = $1
order by id desc
limit $2

-- latestOfKind
select id, team_id, kind, done, total, result, fault, begun_by, begun_at, progressed_at, finished_at
from background_jobs
where kind = $1
order by id desc
limit 1

-- lockBackgroundJob
select id, team_id, kind, done, total, result, fault, begun_by, begun_at, progressed_at, finished_at, given,
  cursor
from background_jobs
where id = $1
  and finished_at is null
for update

-- lostBackgroundJobs
select id
from background_jobs b
where finished_at is null
  and progressed_at < to_timestamp($1)
  and not exists (
  select
  from pgboss.job j
  where j.name = $2
    and j.id = b.id
    and j.state <= 'active' offset 0
)
  and not exists (
  select
  from pgboss.job d
  where d.name = $3
    and d.source_id = b.id
    and d.state <= 'active' offset 0
)
order by progressed_at
limit $4
