-- deleteBatch
with old as (
  select team_id, id
  from contact_upserts
  where created_at < to_timestamp($1)
    and (finished_at < to_timestamp($2) or created_at < to_timestamp($3))
  limit $4
), gone as (
  delete from contact_upserts u using old
  where u.team_id = old.team_id
    and u.id = old.id
  returning 1
)
select count(*) as count
from gone

-- finishUpsert
update contact_upserts
set body = null, result = $1, finished_at = to_timestamp($2)
where team_id = $3
  and id = $4

-- insertUpsert
insert into contact_upserts (team_id, id, body, created_at)
values ($1, $2, $3, to_timestamp($4))

-- lockUpsert
select body
from contact_upserts
where team_id = $1
  and id = $2
  and finished_at is null
for update

-- upsertResult
select result
from contact_upserts
where team_id = $1
  and id = $2
  and finished_at is not null
