-- limitWaits
select set_config('lock_timeout', $1, true), set_config('statement_timeout', $2, true)

-- notify
select pg_notify($1, payload)
from unnest($2::text[]) payload
