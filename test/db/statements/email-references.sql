select d.team_id, case d.status when 'verified' then 'domain' else 'pending' end as kind, d.name as key, d.id,
  null::uuid as version_id, null::text[] as slots
from unnest($1::uuid[], $2::text[]) as w (team_id, key)
join domains d on d.team_id = w.team_id
  and d.name = w.key
union all
select t.team_id, 'template', t.id::text, t.id, v.id, v.slots
from unnest($3::uuid[], $4::uuid[]) as w (team_id, key)
join templates t on t.team_id = w.team_id
  and t.id = w.key
join template_versions v on v.team_id = t.team_id
  and v.id = t.version_id
union all
select c.team_id, 'contact', c.identity, c.id, null, null
from unnest($5::uuid[], $6::text[]) as w (team_id, key)
join contacts c on c.team_id = w.team_id
  and c.identity = w.key
