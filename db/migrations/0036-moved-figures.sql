-- What moved of the daily figures: whoever moves rows appends it in the same statement, so that nobody waits for a
-- counter and nothing has to be counted again. A figure is the sum of its moves; a scheduled job folds them.
create table moved_figures (
  team_id uuid not null,
  id bigint generated always as identity,
  channel text not null,
  -- The UTC day on which the messages were accepted.
  day date not null,
  broadcast_id uuid,
  status text not null,
  count integer not null,
  primary key (team_id, id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- What there is already is counted once.
delete from daily_figures;
insert into daily_figures (team_id, channel, day, status, count)
select team_id, 'email', (created_at at time zone 'UTC')::date, status, count(*) from emails
where team_id in (select id from teams)
  and (http_request_id is not null or strpos(tags::text, '"heliograph:sign-in-link"') = 0)
group by 1, 2, 3, 4
union all
select team_id, 'whatsapp', (created_at at time zone 'UTC')::date, status, count(*) from whatsapp_messages
where team_id in (select id from teams)
group by 1, 2, 3, 4;

-- Processes of the version before, which append nothing, may run on for a while: the last days are counted once more.
insert into upkeep (kind, done_until) values ('figures', now() + interval '1 hour');
