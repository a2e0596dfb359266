-- deleteErased
delete from erased_contacts
where team_id = $1
  and hash = any($2::bytea[])

-- erasedByHashes
select hash, status, suppression, cause, left_topic_ids
from erased_contacts
where team_id = $1
  and hash = any($2::bytea[])
order by erased_at

-- hasErased
select 1
from erased_contacts
where team_id = $1

-- keepErased
insert into erased_contacts (team_id, hash, status, suppression, cause, left_topic_ids, erased_at)
values ($1, $2, $3, $4, $5, $6::uuid[], to_timestamp($7))
on conflict (team_id, hash) do
update
set status = excluded.status, suppression = excluded.suppression, cause = excluded.cause,
  left_topic_ids = excluded.left_topic_ids, erased_at = excluded.erased_at

-- statusToKeep
select case status_before when 'unsubscribed' then status_before else status end as status
from contacts
where team_id = $1
  and id = $2

-- storeOptOut
insert into erased_contacts as e (team_id, hash, status, left_topic_ids, erased_at)
values ($1, $2, $3, $4::uuid[], to_timestamp($5))
on conflict (team_id, hash) do
update
set status = case when e.status = 'subscribed' or excluded.status = 'unsubscribed' then excluded.status
  else e.status end, left_topic_ids = array(
  select unnest(e.left_topic_ids)
  union
  select unnest(excluded.left_topic_ids)
), erased_at = excluded.erased_at
