-- What statuses of WhatsApp say beyond their kind: that an accepted message has to be sent again, and what it costs.

-- Reported as sent, and failed later for a reason that passes: it waits as a queued message does, and is shown as sent.
alter table whatsapp_messages add column was_sent boolean not null default false;
-- Meta's ids of the attempts that failed like this. Their later statuses, other than delivered and read, change nothing.
alter table whatsapp_messages add column given_back text[];
-- {category, type, billable} of the last status that had it, and when that was.
alter table whatsapp_messages add column pricing json;
alter table whatsapp_messages add column pricing_at timestamptz;
-- The recipient's id at Meta, where it isn't the number's digits.
alter table whatsapp_messages add column wa_id text;

-- What is shown as sent counts as sent.
create or replace function count_whatsapp_messages() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' then
    insert into figure_deltas (team_id, channel, hour, status, count)
    select team_id, 'whatsapp', date_trunc('hour', created_at, 'UTC'), shown, sum(n) from (
      select team_id, created_at, case when was_sent and status = 'queued' then 'sent' else status end as shown, 1 as n
      from became
      union all
      select team_id, created_at, case when was_sent and status = 'queued' then 'sent' else status end, -1
      from was) delta
    group by team_id, 3, shown having sum(n) <> 0;
  else
    insert into figure_deltas (team_id, channel, hour, status, count)
    select team_id, 'whatsapp', date_trunc('hour', created_at, 'UTC'),
      case when was_sent and status = 'queued' then 'sent' else status end as shown,
      case tg_op when 'INSERT' then count(*) else -count(*) end
    from changed group by team_id, 3, shown;
  end if;
  return null;
end $$;
