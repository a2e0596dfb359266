-- oldWeb
select exists (
  select
  from processes
  where kind = 'web'
    and version is null
    and seen_at > now() - make_interval(secs => $1)
) as is_running, (
  select done_until = '-infinity'
  from upkeep
  where kind = $2
) as has_run

-- recordPurge
insert into upkeep (kind, done_until)
values ($1, $2::timestamptz)
on conflict (kind) do
update
set done_until = excluded.done_until
