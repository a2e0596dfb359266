-- deleteExpiredSessions
delete from sessions
where id in (
  select id
  from sessions
  where expires_at < to_timestamp($1)
  order by expires_at
  limit $2
)

-- expireKey
update api_keys
set expires_at = least(expires_at, to_timestamp($1))
where team_id = $2
  and id = $3
  and revoked_at is null
  and (expires_at is null or expires_at > to_timestamp($4))
returning id, name, prefix, scopes, domain, created_at, expires_at, revoked_at, last_used_at

-- insertKey
insert into api_keys (id, team_id, name, prefix, hash, scopes, domain, created_at, expires_at)
values ($1, $2, $3, $4, $5, $6::text[], $7, to_timestamp($8), to_timestamp($9))

-- insertSession
insert into sessions (id, team_id, user_id, role, hash, created_at, expires_at)
values ($1, $2, $3, $4, $5, to_timestamp($6), to_timestamp($7))

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

-- principalsBySessions
select encode(s.hash, 'hex') as hash, s.id, s.team_id, null::text as domain,
  null::timestamptz as last_used_at, u.email as person, case when s.role = 'viewer' or (s.role is not null
  and m.role = 'viewer') then $1::text[] else $2::text[] end as scopes
from sessions s
join teams t on t.id = s.team_id
  and t.suspended_at is null
left join memberships m on m.team_id = s.team_id
  and m.user_id = s.user_id
left join users u on u.id = s.user_id
where s.hash in (
  select decode(hash, 'hex')
  from unnest($3::text[]) as w (hash)
)
  and s.revoked_at is null
  and s.expires_at > to_timestamp($4)
  and (s.role is null or m.role is not null)

-- revokeKey
update api_keys
set revoked_at = coalesce(revoked_at, to_timestamp($1))
where team_id = $2
  and id = $3
returning id, name, prefix, scopes, domain, created_at, expires_at, revoked_at, last_used_at

-- revokeSessions
update sessions s
set revoked_at = to_timestamp($1)
where s.team_id = $2
  and s.user_id = (
  select id
  from users
  where identity = $3
)
  and s.revoked_at is null
  and s.expires_at > to_timestamp($4)
returning s.id, (
  select email
  from users u
  where u.id = s.user_id
) as user, s.role, s.created_at, s.expires_at, s.revoked_at

-- sessionsOfTeam
select s.id, coalesce(m.email, u.email) as user, s.role, s.created_at, s.expires_at, s.revoked_at
from sessions s
left join users u on u.id = s.user_id
left join memberships m on m.team_id = s.team_id
  and m.user_id = s.user_id
where s.team_id = $1
  and s.expires_at > to_timestamp($2)
  and s.user_id = $3
order by s.id

-- upsertMember
insert into memberships (team_id, user_id)
values ($1, $2)
on conflict do nothing

-- upsertMember
insert into users (id, email, identity, created_at)
values ($1, $2, $3, to_timestamp($4))
on conflict (identity) do
update
set email = users.email
returning id
