-- Until when uploads keep a file: what the collector looks through has no others.
alter table files add column kept_until timestamptz;
drop index files_unused;
create index files_unused on files (last_used_at) where state = 'ready' and kept_until is null;
create index files_kept on files (kept_until) where kept_until is not null;
drop index attachments_content;
