-- auditEntries
select id, team_id, actor, action, subject, detail, created_at
from audit_entries
where team_id = $1
  and team_id = any($2::uuid[])
  and id < $3
  and lower(actor) = lower($4)
  and split_part(action, '.', 1) = $5
  and id >= $6
  and id < $7
order by id desc
limit $8

-- entriesOfBroadcast
select actor, action, created_at
from audit_entries
where team_id = $1
  and detail = $2
  and split_part(action, '.', 1) = 'broadcast'
  and action = any($3::text[])
order by id desc
limit $4

-- entriesOfPart
select id
from audit_entries
where id < $1
order by id desc offset $2
limit 1

-- insertAuditEntry
insert into audit_entries (id, team_id, actor, action, subject, detail, created_at)
values ($1, $2, $3, $4, $5, $6, to_timestamp($7))

-- keyCreators
select k.prefix, e.actor
from unnest($1::text[], $2::uuid[], $3::uuid[]) as k (prefix, first, next)
cross join lateral (
  select actor
  from audit_entries
  where team_id = $4
    and id >= k.first
    and id < k.next
    and action in ('key.create', 'key.rotate')
    and split_part(detail, ':', 1) = k.prefix
  order by id
  limit 1
) e

-- memberAdditions
select subject, max(created_at) as created_at
from audit_entries
where team_id = $1
  and action = 'member.add'
  and detail = any($2::text[])
group by subject
