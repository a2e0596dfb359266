-- How many contacts have each topic: a count is the sum of its rows. Whatever moves contacts adds rows, so that nobody
-- waits for a counter and nothing has to be counted again; a scheduled job makes one of them. By triggers: processes of
-- the version before move contacts, too.
create table topic_counts (
  team_id uuid not null,
  topic_id uuid not null,
  id bigint generated always as identity,
  count bigint not null,
  -- Whether it is the sum of what moved until a moment; what is not waits for the job.
  folded boolean not null default false,
  primary key (team_id, topic_id, id)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
create index topic_counts_moved on topic_counts (team_id, topic_id) where not folded;

create function count_topics() returns trigger language plpgsql as $$
begin
  if tg_op = 'INSERT' then
    insert into topic_counts (team_id, topic_id, count)
    select team_id, topic_id, count(*) from became cross join lateral unnest(topic_ids) topic_id
    group by team_id, topic_id;
  elsif tg_op = 'DELETE' then
    insert into topic_counts (team_id, topic_id, count)
    select team_id, topic_id, -count(*) from was cross join lateral unnest(topic_ids) topic_id
    group by team_id, topic_id;
  else
    insert into topic_counts (team_id, topic_id, count)
    select team_id, topic_id, sum(n) from (
      select team_id, unnest(topic_ids) as topic_id, 1 as n from became
      union all
      select team_id, unnest(topic_ids), -1 from was) moved
    group by team_id, topic_id having sum(n) <> 0;
  end if;
  return null;
end $$;

create trigger count_topics_added after insert on contacts
  referencing new table as became for each statement execute function count_topics();
create trigger count_topics_removed after delete on contacts
  referencing old table as was for each statement execute function count_topics();
create trigger count_topics_changed after update on contacts
  referencing old table as was new table as became for each statement execute function count_topics();
