-- keysOfTeam
select id, name, prefix, scopes, domain, created_at, expires_at, revoked_at, last_used_at
from api_keys
where team_id = $1
order by id

-- noteKeyUse
update api_keys
set last_used_at = to_timestamp($1)
where id in (
  select id
  from api_keys
  where id = $2
    and (last_used_at is null or last_used_at < to_timestamp($3))
  for no key update skip locked
)

-- principalsByKeys
select encode(k.hash, 'hex') as hash, k.id, k.team_id, k.scopes, k.domain, null::text as person,
  k.last_used_at
from api_keys k
join teams t on t.id = k.team_id
  and t.suspended_at is null
where k.hash in (
  select decode(hash, 'hex')
  from unnest($1::text[]) as w (hash)
)
  and k.revoked_at is null
  and (k.expires_at is null or k.expires_at > to_timestamp($2))

-- sessionsOfTeam
select s.id, coalesce(m.email, u.email) as user, s.role, s.created_at, s.expires_at, s.revoked_at
from sessions s
left join users u on u.id = s.user_id
left join memberships m on m.team_id = s.team_id
  and m.user_id = s.user_id
where s.team_id = $1
  and s.expires_at > to_timestamp($2)
  and true
order by s.id
