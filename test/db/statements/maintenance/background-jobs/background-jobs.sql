-- backgroundJobById
select id, team_id, kind, done, total, result, fault, begun_by, begun_at, finished_at
from background_jobs
where id = $1
  and ($2::uuid is null or team_id = $3)

-- deleteBackgroundJobs
delete from background_jobs
where finished_at is not null
  and begun_at < to_timestamp($1)

-- latestBackgroundJobs
select id, team_id, kind, done, total, result, fault, begun_by, begun_at, finished_at
from background_jobs
where team_id = $1
order by id desc
limit $2

-- latestBackgroundJobs
select id, team_id, kind, done, total, result, fault, begun_by, begun_at, finished_at
from background_jobs
where true
order by id desc
limit $1

-- latestOfKind
select id, team_id, kind, done, total, result, fault, begun_by, begun_at, finished_at
from background_jobs
where kind = $1
order by id desc
limit 1

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
