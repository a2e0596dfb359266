-- When a sender, a queue or a team stood still: a message is tried for 24 h, and time in which it could not be tried
-- does not count. Triggers keep it, so that no way of pausing is forgotten.
create table standstills (
  -- `sender:<key>`, `queue:<name>` or `team:<id>`.
  subject text not null,
  began_at timestamptz not null,
  -- In the future, or infinity, while it lasts.
  ended_at timestamptz not null,
  primary key (subject, began_at)
);

-- From now on a subject stands still until then; null: it does not.
create function stand_still(of_subject text, until timestamptz) returns void language plpgsql as $$
declare
  now timestamptz := service_time();
begin
  update standstills set ended_at = greatest(coalesce(until, now), now)
  where subject = of_subject and ended_at > now;
  if not found and until > now then
    insert into standstills (subject, began_at, ended_at) values (of_subject, now, until)
    on conflict (subject, began_at) do update set ended_at = excluded.ended_at;
  end if;
end $$;

create function note_team_standstill() returns trigger language plpgsql as $$
begin
  perform stand_still('team:' || new.id, case when new.suspended_at is not null then timestamptz 'infinity' end);
  return null;
end $$;
create trigger note_standstill after update of suspended_at on teams for each row
  when (old.suspended_at is distinct from new.suspended_at) execute function note_team_standstill();

create function note_queue_standstill() returns trigger language plpgsql as $$
begin
  if tg_op = 'DELETE' then
    perform stand_still('queue:' || old.queue, null);
  else
    perform stand_still('queue:' || new.queue, 'infinity');
  end if;
  return null;
end $$;
create trigger note_standstill after insert or delete on paused_queues
  for each row execute function note_queue_standstill();

create function note_sender_standstill() returns trigger language plpgsql as $$
begin
  perform stand_still('sender:' || new.key, case when new.troubles > 0 then timestamptz 'infinity' else new.paused_until end);
  return null;
end $$;
-- Each lot of sends writes a sender's row: only a pause or a trouble that begins, moves or ends is worth a look.
create trigger note_standstill after update of paused_until, troubles on senders for each row
  when (old.paused_until is distinct from new.paused_until or (old.troubles > 0) <> (new.troubles > 0))
  execute function note_sender_standstill();

insert into standstills (subject, began_at, ended_at)
select 'team:' || id, suspended_at, timestamptz 'infinity' from teams where suspended_at is not null
union all select 'queue:' || queue, paused_at, 'infinity' from paused_queues
union all select 'sender:' || key, coalesce(troubled_at, now()), 'infinity' from senders where troubles > 0
union all select 'sender:' || key, now(), paused_until from senders where troubles = 0 and paused_until > now();
