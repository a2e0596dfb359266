-- Mail of ours (sign-in links, notices) is known by a column of its own: a tag could be a customer's too.
-- Nobody writes to the view any more.
drop trigger write_email on emails;
drop function write_email;

alter table accepted_emails add column internal boolean not null default false;
alter table email_states add column internal boolean not null default false;
alter table email_states drop column in_figures;

create or replace view emails as
select e.team_id, e.id, s.id as state_id, e.domain_id, e.template_id, e.template_version_id, e.variables, e.from_address,
  e.to_emails, e.subject, e.html, s.size_kb, e.tags, s.status, e.idempotency_key, e.created_at, s.requeued_at,
  s.provider_message_id, e.broadcast_id, e.contact_id, e.body_text, e.headers, e.reply_to, e.http_request_id,
  s.pending_recipients, s.unfinished, s.tries_from, e.attachments, e.internal
from email_states s join accepted_emails e on e.team_id = s.team_id and e.id = s.id;
