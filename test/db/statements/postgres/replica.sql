-- readReplayPosition
select system_identifier::text as system, current_database() as database, pg_is_in_recovery() as standby, case
  when pg_is_in_recovery() then extract(epoch from now() - pg_last_xact_replay_timestamp()) end as behind
from pg_control_system()
