-- Emails are two tables from here on: accepted_emails, whose rows stay as they were accepted, and email_states. The view
-- that has the old table's name joins them. The version before reads and writes it as it did the table.
drop trigger copy_state on emails;
drop function copy_email_state;
drop procedure copy_email_states;

alter table emails rename to accepted_emails;
alter table accepted_emails drop column unfinished;
alter table accepted_emails
  drop column status, drop column size_kb, drop column requeued_at, drop column tries_from,
  drop column provider_message_id, drop column pending_recipients;
alter table accepted_emails reset (fillfactor);
alter table accepted_emails add column rewrites smallint not null default 0;

-- The state comes first: who locks both, locks them in this order. A stretch of ids is given for both tables.
create view emails as
select e.team_id, e.id, s.id as state_id, e.domain_id, e.template_id, e.template_version_id, e.variables, e.from_address,
  e.to_emails, e.subject, e.html, s.size_kb, e.tags, s.status, e.idempotency_key, e.created_at, s.requeued_at,
  s.provider_message_id, e.broadcast_id, e.contact_id, e.body_text, e.headers, e.reply_to, e.http_request_id,
  s.pending_recipients, s.unfinished, s.tries_from, e.attachments
from email_states s join accepted_emails e on e.team_id = s.team_id and e.id = s.id;

-- For the version before alone, while a deployment is under way or rolled back: it knows one table. What a statement of
-- its does not change stays as it is in the rows, whatever the statement has seen of them.
create function write_email() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    insert into accepted_emails (
      team_id, id, domain_id, template_id, template_version_id, variables, from_address, to_emails, subject, html, tags,
      idempotency_key, created_at, broadcast_id, contact_id, body_text, headers, reply_to, http_request_id, attachments)
    values (
      new.team_id, new.id, new.domain_id, new.template_id, new.template_version_id, new.variables, new.from_address,
      new.to_emails, new.subject, new.html, new.tags, new.idempotency_key, new.created_at, new.broadcast_id,
      new.contact_id, new.body_text, new.headers, new.reply_to, new.http_request_id, new.attachments);
    insert into email_states (
      team_id, id, created_at, broadcast_id, reached_id, in_figures, status, size_kb, requeued_at, tries_from,
      provider_message_id, pending_recipients)
    values (
      new.team_id, new.id, new.created_at, new.broadcast_id,
      case when new.broadcast_id is not null then new.contact_id end,
      new.http_request_id is not null or new.broadcast_id is not null
        or strpos(new.tags::text, '"heliograph:sign-in-link"') = 0,
      new.status, new.size_kb, new.requeued_at, new.tries_from, new.provider_message_id, new.pending_recipients);
    return new;
  end if;
  if tg_op = 'DELETE' then
    delete from email_states where team_id = old.team_id and id = old.id;
    if not found then
      return null;
    end if;
    delete from accepted_emails where team_id = old.team_id and id = old.id;
    return old;
  end if;
  update email_states s set
    reached_id = case when new.contact_id is distinct from old.contact_id and s.broadcast_id is not null
      then new.contact_id else s.reached_id end,
    status = case when new.status is distinct from old.status then new.status else s.status end,
    size_kb = case when new.size_kb is distinct from old.size_kb then new.size_kb else s.size_kb end,
    requeued_at = case when new.requeued_at is distinct from old.requeued_at then new.requeued_at else s.requeued_at end,
    tries_from = case when new.tries_from is distinct from old.tries_from then new.tries_from else s.tries_from end,
    provider_message_id = case when new.provider_message_id is distinct from old.provider_message_id
      then new.provider_message_id else s.provider_message_id end,
    pending_recipients = case when new.pending_recipients is distinct from old.pending_recipients
      then new.pending_recipients else s.pending_recipients end,
    rewrites = case when new.to_emails <> old.to_emails then s.rewrites + 1 else s.rewrites end
  where s.team_id = old.team_id and s.id = old.id;
  if not found then
    return null;
  end if;
  -- Only erasing a person and emptying bodies write these.
  if (new.to_emails, new.contact_id, new.subject, new.html, new.body_text, new.variables::text, new.headers::text,
      new.attachments::text)
    is distinct from (old.to_emails, old.contact_id, old.subject, old.html, old.body_text, old.variables::text,
      old.headers::text, old.attachments::text)
  then
    update accepted_emails set
      to_emails = new.to_emails, contact_id = new.contact_id, subject = new.subject, html = new.html,
      body_text = new.body_text, variables = new.variables, headers = new.headers, attachments = new.attachments,
      rewrites = case when new.to_emails <> old.to_emails then rewrites + 1 else rewrites end
    where team_id = old.team_id and id = old.id;
  end if;
  return new;
end $$;
create trigger write_email instead of insert or update or delete on emails
  for each row execute function write_email();
