-- claimAsOriginal
insert into database_home (id, place, timeline, how, decided_at)
select $1, database_place(), database_timeline(), 'begun', now()
where database_timeline() is not null
on conflict do nothing

-- claimDatabase
update database_home
set id = $1, place = database_place(), timeline = database_timeline(), how = $2, decided_at = now()

-- deleteHeartbeat
delete from process_marks
where process = $1

-- deleteOldMarks
delete from process_marks
where at < now() - make_interval(days => $1)

-- lockIdentity
select id as home_id, is_at_home() as is_home
from database_home
for update

-- writeHeartbeat
with written as (
  update process_marks
  set mark = $1, at = now()
  where process = $2
    and mark >= $3
  returning mark
)
select exists (
  select
  from written
) as found, now() as at, is_at_home() as is_home, h.place = database_place() as is_same_place,
  h.id as home_id, h.how
from (
  select
) one
left join database_home h on true

-- writeToDisk
do $$ begin
set local work_mem = '64kB'; perform n
from (
  select n
  from generate_series(1, 500) n
  order by repeat(md5(n::text), 30) offset 499
) sorted; end $$
