-- Keeps messages from processes of version 0.1.0 that it would send wrongly: it knows the default number and text only.

-- Whether it has media, a location, named variables or a code to copy. Null: version 0.1.0 accepted it.
alter table whatsapp_messages add column parts boolean;
-- How often later versions have released or requeued it. Version 0.1.0 doesn't count, which tells its updates apart.
alter table whatsapp_messages add column requeues integer not null default 0;

-- Messages with parts have their own queue and lanes.
create sequence deliver_whatsapp_parts_places minvalue 0 start 0;
alter table allowances add column whatsapp_parts_place bigint not null default 0;
alter table allowances add column whatsapp_parts_batch_place bigint not null default 0;

-- Version 0.1.0 would give the message a job of the default number's queue. So it doesn't release or requeue it. A
-- message that Meta gave back becomes due instead, because version 0.1.0 makes that job in any case.
create function keep_whatsapp_from_old_version() returns trigger language plpgsql as $$
begin
  if old.accepted_at is null or new.accepted_at is not null then
    return null;
  end if;
  new.due_at := service_time();
  return new;
end $$;
create trigger keep_from_old_version before update of due_at, requeued_at on whatsapp_messages for each row
  when ((old.parts or old.phone_number_id is not null) and new.requeues = old.requeues and (
    old.due_at is not null and new.due_at is null or new.requeued_at is distinct from old.requeued_at))
  execute function keep_whatsapp_from_old_version();

-- Version 0.1.0 accepts every message for the default number. Clients repeat a lock timeout.
create function reject_whatsapp_of_old_version() returns trigger language plpgsql as $$
begin
  if exists (select from teams where id = new.team_id and whatsapp_number is not null and not test) then
    raise exception 'the team has a WhatsApp number that this version does not know' using errcode = '55P03';
  end if;
  return new;
end $$;
create trigger reject_of_old_version before insert on whatsapp_messages for each row
  when (new.parts is null) execute function reject_whatsapp_of_old_version();
