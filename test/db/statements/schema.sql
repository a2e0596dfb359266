-- schemaFault
select number, file, to_jsonb(m) ->> 'digest' as digest
from schema_migrations m

-- schemaFault
select to_regclass('schema_migrations')::text as made

-- serverClock
select current_setting('server_version') as version, clock_timestamp() as at

-- serverSettings
select current_setting('transaction_read_only') as transaction_read_only, current_setting('fsync') as fsync,
  current_setting('full_page_writes') as full_page_writes,
  current_setting('synchronous_commit') as synchronous_commit
