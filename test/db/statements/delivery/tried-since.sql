-- deletePauseHistory
delete from pause_history
where ended_at < to_timestamp($1)

-- triedSince
select t.id, t.since + coalesce(stood.still, interval '0') as tried_since
from unnest($1::uuid[], $2::uuid[], $3::text[], $4::timestamptz[], $5::uuid[], $6::uuid[]) as t (id, team_id,
  sender, since, broadcast, template)
cross join (
  select service_time() as now offset 0
) clock
cross join lateral (
  select sum(upper(piece) - lower(piece)) as still
  from (
    select range_agg(tstzrange(greatest(s.began_at, t.since), least(s.ended_at, clock.now))) as pieces
    from pause_history s
    where s.subject in ($7, $8, 'sender:' || t.sender, 'team:' || t.team_id, 'broadcast:' || t.broadcast,
      'bulk:' || t.team_id, 'number:' || t.sender, 'template:' || t.template)
      and (s.subject <> 'bulk:' || t.team_id or exists (
      select
      from accepted_emails a
      where a.team_id = t.team_id
        and a.id = t.id
        and a.batch
    ))
      and s.ended_at > t.since
      and s.began_at < clock.now
      and t.since < clock.now
  ) all_of_them, unnest(pieces) as piece
) stood
