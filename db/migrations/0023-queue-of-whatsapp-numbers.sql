-- The queue of the numbers that aren't the default one: its places, and pauses that operators begin.

create sequence deliver_whatsapp_number_places minvalue 0 start 0;

-- A number that an operator has paused is tried no more than one that Meta has paused.
create function note_number_pause() returns trigger language plpgsql as $$
begin
  perform record_pause('number:whatsapp:' || new.phone_number_id, case when new.paused_at is not null then timestamptz 'infinity' end);
  return null;
end $$;
create trigger note_pause after update of paused_at on whatsapp_numbers for each row
  when ((old.paused_at is null) <> (new.paused_at is null)) execute function note_number_pause();

-- Whether the app of a number's token gets the events of its account; null before the first check.
alter table whatsapp_numbers add column subscribed boolean;
