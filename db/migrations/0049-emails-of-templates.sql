-- outside a transaction: a template's newest emails are counted without reading the others of their team.
drop index concurrently if exists accepted_emails_template;
create index concurrently accepted_emails_template on accepted_emails (team_id, template_id, id)
  where template_id is not null;
