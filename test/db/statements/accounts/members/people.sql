-- belongs
select exists (
  select
  from memberships
  where user_id = $1
) as any

-- bindOpenidIdentity
insert into openid_identities (issuer, subject, user_id, created_at)
values ($1, $2, $3, to_timestamp($4))
on conflict do nothing

-- deleteMembership
delete from memberships
where team_id = $1
  and user_id = $2

-- deleteMembership
delete from openid_identities o using users u
where o.user_id = $1
  and u.id = o.user_id
  and not u.operator
  and not exists (
  select
  from memberships m
  where m.user_id = u.id
)

-- deleteMembership
update sessions
set revoked_at = to_timestamp($1)
where team_id = $2
  and user_id = $3
  and revoked_at is null

-- insertMembership
insert into memberships (team_id, user_id, email, role)
values ($1, $2, $3, $4)
on conflict (team_id, user_id) do nothing

-- lockMember
select
from memberships
where team_id = $1
  and role = 'owner'
order by user_id
for update

-- lockMember
select m.user_id, coalesce(m.email, u.email) as email, m.role, (
  select max(s.seen_at)
  from dashboard_seats s
  where s.team_id = m.team_id
    and s.user_id = m.user_id
) as last_seen_at
from memberships m
join users u on u.id = m.user_id
where m.team_id = $1
  and u.identity = $2
for update of m

-- membersOfTeam
select m.user_id, coalesce(m.email, u.email) as email, m.role, (
  select max(s.seen_at)
  from dashboard_seats s
  where s.team_id = m.team_id
    and s.user_id = m.user_id
) as last_seen_at
from memberships m
join users u on u.id = m.user_id
where m.team_id = $1
order by u.identity

-- openidIdentities
select user_id, subject
from openid_identities
where issuer = $1
  and (subject = $2 or user_id = $3)

-- personById
select id, email, operator
from users
where id = $1

-- personByIdentity
select id, email, operator
from users
where identity = $1

-- updateRole
update memberships
set role = $1
where team_id = $2
  and user_id = $3

-- upsertPerson
insert into users (id, email, identity, operator, created_at)
values ($1, $2, $3, $4, to_timestamp($5))
on conflict (identity) do
update
set operator = users.operator
  or excluded.operator
returning id, email, operator
