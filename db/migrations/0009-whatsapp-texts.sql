-- Which processes are of 0.1.0: those store complete posts of WhatsApp, with what recipients write. The texts are deleted
-- once, and again when no such process is seen any more.
-- Null: of 0.1.0.
alter table processes add column version text;

create function note_old_web() returns trigger language plpgsql as $$
begin
  insert into upkeep (kind, done_until) values ('whatsapp_texts', '-infinity')
  on conflict (kind) do update set done_until = '-infinity';
  return null;
end $$;
create trigger note_old_web after insert on processes for each row
  when (new.kind = 'web' and new.version is null) execute function note_old_web();
