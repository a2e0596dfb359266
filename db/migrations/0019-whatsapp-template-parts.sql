-- What templates are made of beyond text: derived from the provider's object; null until the next sync reads it.
alter table whatsapp_templates add column parts json;
-- GREEN, YELLOW or RED, as Meta last reported it.
alter table whatsapp_templates add column quality text;
-- The category that Meta has announced for it.
alter table whatsapp_templates add column announced_category text;
-- When Meta last changed its category.
alter table whatsapp_templates add column category_at timestamptz;

-- Messages wait while their template is paused: that is no time in which they could be sent.
create function note_template_pause() returns trigger language plpgsql as $$
begin
  perform record_pause('template:' || new.id, case when new.status = 'paused' then timestamptz 'infinity' end);
  return null;
end $$;
create trigger note_pause after update of status on whatsapp_templates for each row
  when ((old.status = 'paused') <> (new.status = 'paused')) execute function note_template_pause();
