-- outside a transaction: entries of the audit trail are found by who acted and by what was done, newest first.
drop index concurrently if exists audit_entries_actor;
create index concurrently audit_entries_actor on audit_entries (lower(actor), id);
drop index concurrently if exists audit_entries_action;
create index concurrently audit_entries_action on audit_entries (action, id);
drop index concurrently if exists audit_entries_kind;
create index concurrently audit_entries_kind on audit_entries (split_part(action, '.', 1), id);
