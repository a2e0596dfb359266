-- Idempotency keys first: a key alone leads to its messages, however many teams there are, and a team's as it did.
drop index emails_idempotency_key;
create unique index emails_idempotency_key on accepted_emails (idempotency_key, team_id)
  where idempotency_key is not null;
drop index whatsapp_requests_idempotency_key;
create unique index whatsapp_requests_idempotency_key on whatsapp_requests (idempotency_key, team_id)
  where idempotency_key is not null;
