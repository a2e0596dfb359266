-- contactsToCopy
select c.team_id, c.identity, c.id as contact_id, c.email, c.suppression, c.suppression_cause,
  c.suppressed_softly, c.suppression_copied is not distinct from case when c.suppressed_softly then 'softly'
  else c.suppression end as is_copied
from contacts c
where (case when suppressed_softly then 'softly' else suppression end) is distinct from suppression_copied
order by team_id, id
limit $1
for no key update skip locked

-- suppressionOf
select c.suppression_cause, greatest(c.lifted_at, s.lifted_at) as lifted_at
from contacts c
left join suppressed_addresses s on s.team_id = c.team_id
  and s.identity = c.identity
where c.team_id = $1
  and c.id = $2
