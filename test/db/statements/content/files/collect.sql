-- deleteExpiredUploads
delete from uploads
where (team_id, id) in (
  select team_id, id
  from uploads
  where expires_at <= service_time()
  limit $1
)

-- deleteOrphans
delete from files
where (team_id, id) in (
  select team_id, id
  from files
  where state = 'orphaned'
  limit $1
  for update skip locked
)

-- detachFiles
delete from email_files
where team_id = $1
  and email_id = any($2::uuid[])
returning encode(sha256, 'hex') as sha256

-- orphanDetached
with alone as materialized (
  select id
  from files f
  where team_id = $1
    and state = 'ready'
    and sha256 in (
    select decode(w, 'hex')
    from unnest($2::text[]) w
  )
    and not exists (
    select
    from email_files n
    where n.team_id = f.team_id
      and n.sha256 = f.sha256
  )
    and not coalesce(f.kept_until > service_time(), false)
  for update skip locked
)
update files f
set state = 'orphaned'
from alone a
where f.team_id = $3
  and f.id = a.id
returning f.size

-- orphanUnused
with needed as materialized (
  select n.sha256
  from email_states e
  cross join lateral (
    select sha256
    from email_files
    where team_id = $1
      and email_id = e.id offset 0
  ) n
  where e.team_id = $2
    and e.id >= $3
    and (e.unfinished or e.due_at is not null)
), unused as materialized (
  select id
  from files f
  where team_id = $4
    and id = any($5::uuid[])
    and state = 'ready'
    and last_used_at < to_timestamp($6)
    and not coalesce(f.kept_until > service_time(), false)
    and not exists (
    select
    from needed n
    where n.sha256 = f.sha256
  )
  for update skip locked
)
update files f
set state = 'orphaned'
from unused u
where f.team_id = $7
  and f.id = u.id
returning f.size

-- releaseFiles
update files
set kept_until = null
where (team_id, id) in (
  select team_id, id
  from files
  where kept_until <= service_time()
  limit $1
  for update skip locked
)

-- unusedFiles
with needed as materialized (
  select distinct e.team_id, n.sha256
  from (
    select team_id, id
    from email_states
    where unfinished
    union all
    select team_id, id
    from email_states
    where due_at is not null
  ) e
  cross join lateral (
    select sha256
    from email_files
    where team_id = e.team_id
      and email_id = e.id offset 0
  ) n
)
select team_id, id
from files f
where state = 'ready'
  and kept_until is null
  and last_used_at < to_timestamp($1)
  and not exists (
  select
  from needed n
  where n.team_id = f.team_id
    and n.sha256 = f.sha256
)
order by last_used_at
limit $2
