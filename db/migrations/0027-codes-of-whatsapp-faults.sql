-- The provider's fault code beside its words: what it means is shown by it, and never guessed out of prose.
alter table whatsapp_events add column code text;
