-- A webhook that was disabled can catch up on what happened meanwhile; one of a domain is of its name, as mail is.
alter table webhook_endpoints
  drop column domain_id,
  -- Only about emails from this domain, in ASCII, whether the team has it just now or not; null: about everything.
  add column domain text,
  -- Since when; null while it is enabled.
  add column disabled_at timestamptz;

-- What failed is looked for and sent again without reading all that was delivered.
create index webhook_messages_failed on webhook_messages (team_id, endpoint_id, id) where status = 'failed';
