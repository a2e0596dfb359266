-- lockOperatorMail
select pg_advisory_xact_lock(hashtext('operator_mail'))

-- timesOfKeys
select idempotency_key as key, created_at
from accepted_emails
where team_id = $1
  and idempotency_key = any($2::text[])
