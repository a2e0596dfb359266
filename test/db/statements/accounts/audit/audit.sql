-- auditEntries
select id, team_id, actor, action, subject, detail, created_at
from audit_entries
where team_id = any($1::uuid[])
order by id desc
limit $2

-- auditEntries
select id, team_id, actor, action, subject, detail, created_at
from audit_entries
where true
order by id desc
limit $1

-- insertAuditEntry
insert into audit_entries (id, team_id, actor, action, subject, detail, created_at)
values ($1, $2, $3, $4, $5, $6, to_timestamp($7))
