-- outside a transaction: finds when a team's members were added without reading its other audit entries
drop index concurrently if exists audit_entries_added;

create index concurrently audit_entries_added on audit_entries (team_id, subject, created_at) where action = 'member.add';
