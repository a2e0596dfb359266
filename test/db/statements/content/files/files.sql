-- completeLoading
update files
set sha256 = decode($1, 'hex'), size = $2
where team_id = $3
  and id = $4

-- deleteAbandonedFiles
delete from files
where state = 'loading'
  and created_at < to_timestamp($1)
  and last_used_at < to_timestamp($2)

-- dropLoading
delete from files
where team_id = $1
  and id = any($2::uuid[])
  and state = 'loading'

-- filesOfEmails
select e.team_id, e.id, a ->> 'filename' as filename, a ->> 'sha256' as sha256
from accepted_emails e
cross join lateral json_array_elements(e.attachments) a
where e.attachments is not null
  and (e.team_id, e.id) in (
  select *
  from unnest($1::uuid[], $2::uuid[]) as w (team_id, id)
)

-- insertChunks
with used as (
  update files
  set last_used_at = service_time()
  where team_id = $1
    and id = any($2::uuid[])
    and last_used_at < service_time() - interval '5 minutes'
)
insert into file_chunks (team_id, file_id, part, bytes)
values ($3::uuid, $4::uuid, $5::int4, $6)

-- insertLoading
insert into files (team_id, id, sha256, size, created_at, last_used_at)
select $1, w.id, decode(w.sha256, 'hex'), w.size, service_time(), service_time()
from unnest($2::uuid[], $3::text[], $4::int8[]) as w (id, sha256, size)

-- insertUnknown
insert into files (team_id, id, created_at, last_used_at)
values ($1, $2, service_time(), service_time())

-- insertUpload
with kept as (
  update files
  set kept_until = greatest(kept_until, service_time() + make_interval(days => $1))
  where team_id = $2
    and sha256 = decode($3, 'hex')
    and state = 'ready'
)
insert into uploads (team_id, id, filename, content_type, size, sha256, created_at, expires_at)
values ($4, $5, $6, $7, $8, decode($9, 'hex'), service_time(), service_time() + make_interval(days => $10))
returning id, filename, content_type, size, encode(sha256, 'hex') as sha256, expires_at

-- piecesOfChunks
copy (
  select substring(c.bytes from at + 1 for '52440')
  from files f
  join file_chunks c on c.team_id = f.team_id
    and c.file_id = f.id
  cross join lateral generate_series(0, length(c.bytes) - 1, '52440') at
  where f.team_id = 'x'
    and f.sha256 = decode('x', 'hex')
    and f.state = 'ready'
    and c.part between 'x' and 'NaN'
  order by c.part, at
) to stdout (format binary)

-- publishFiles
with published as (
  update files f
  set state = 'ready', last_used_at = service_time()
  from unnest($1::uuid[], $2::uuid[]) as w (team_id, id)
  where f.team_id = w.team_id
    and f.id = w.id
    and f.state = 'loading'
  returning 1
)
select count(*)::int as count
from published

-- readyFiles
select w.team_id, w.sha256
from unnest($1::uuid[], $2::text[]) as w (team_id, sha256)
join files f on f.team_id = w.team_id
  and f.sha256 = decode(w.sha256, 'hex')
  and f.state = 'ready'

-- touchFiles
with due as (
  select f.team_id, f.id
  from files f
  join unnest($1::uuid[], $2::text[]) as w (team_id, sha256) on f.team_id = w.team_id
    and f.sha256 = decode(w.sha256, 'hex')
  where f.state = 'ready'
    and f.last_used_at < service_time() - interval '1 hour'
  order by f.team_id, f.id
  for no key update of f
)
update files f
set last_used_at = service_time()
from due
where f.team_id = due.team_id
  and f.id = due.id

-- uploadsByIds
select id, filename, content_type, size, encode(sha256, 'hex') as sha256, expires_at
from uploads
where team_id = $1
  and id = any($2::uuid[])
  and expires_at > service_time()
