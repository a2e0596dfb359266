-- consumeLink
delete from login_links l using users u
where l.hash = $1
  and l.expires_at > to_timestamp($2)
  and u.id = l.user_id
returning l.user_id, l.team_id, l.role, coalesce((
  select m.email
  from memberships m
  where m.team_id = l.team_id
    and m.user_id = l.user_id
), u.email) as email

-- countLinkRequests
lock table login_requests in share row exclusive mode

-- countLinkRequests
select count(*) filter (where identity = $1 and origin = $2) as of_both,
  count(*) filter (where identity = $3) as of_identity, count(*) filter (where origin = $4) as of_network
from login_requests
where (identity = $5 or origin = $6)
  and created_at > to_timestamp($7)

-- deleteLinkRequest
delete from login_requests
where id = $1

-- deleteOtherSessions
delete from dashboard_sessions
where user_id = $1
  and ($2::uuid is null or team_id = $3)
  and id <> $4
  and ($5::uuid is null or id = $6)

-- deleteOver
delete from dashboard_sessions
where expires_at <= to_timestamp($1)
  or seen_at <= to_timestamp($2)

-- deleteOver
delete from login_links
where expires_at <= to_timestamp($1)

-- deleteOver
delete from login_requests
where created_at <= to_timestamp($1)

-- deleteSession
delete from dashboard_sessions
where id = $1

-- deleteSessionMemberships
delete from dashboard_seats
where team_id = $1
  and user_id = $2

-- deleteSessionMemberships
delete from dashboard_sessions
where user_id = $1
  and team_id = $2

-- deleteSessionMemberships
delete from login_links
where user_id = $1
  and team_id = $2

-- insertDashboardSession
insert into dashboard_seats (team_id, user_id, session_id, role)
select m.team_id, m.user_id, $1, coalesce($2, m.role)
from memberships m
where m.user_id = $3
  and ($4::uuid is null or m.team_id = $5) for key share

-- insertDashboardSession
insert into dashboard_sessions (id, hash, user_id, team_id, operator, user_agent, created_at, seen_at,
  expires_at)
select $1, $2, u.id, $3, u.operator
  and $4::uuid is null, $5, to_timestamp($6), to_timestamp($7), to_timestamp($8)
from users u
where u.id = $9

-- insertDashboardSession
select s.operator
  or exists (
  select
  from dashboard_seats d
  where d.session_id = s.id
) as holds
from dashboard_sessions s
where s.id = $1

-- insertLink
insert into login_links (hash, user_id, team_id, role, created_at, expires_at)
values ($1, $2, $3, (
  select role
  from memberships
  where team_id = $4
    and user_id = $5
), to_timestamp($6), to_timestamp($7))

-- insertLinkRequest
insert into login_requests (id, identity, origin, created_at)
values ($1, $2, $3, to_timestamp($4))

-- membershipsOfSession
select s.team_id, t.name, m.role, s.role as held, t.suspended_at is not null as suspended, t.test,
  t.created_at, s.seen_at
from dashboard_seats s
join teams t on t.id = s.team_id
join memberships m on m.team_id = s.team_id
  and m.user_id = s.user_id
where s.session_id = $1
order by lower(t.name), t.id

-- openLinks
select l.user_id, max(l.expires_at) as expires_at
from memberships m
join login_links l on l.user_id = m.user_id
  and l.team_id = m.team_id
where m.team_id = $1
  and l.expires_at > to_timestamp($2)
group by l.user_id

-- personOfLink
select l.user_id, l.team_id, l.role, coalesce((
  select m.email
  from memberships m
  where m.team_id = l.team_id
    and m.user_id = l.user_id
), u.email) as email
from login_links l
join users u on u.id = l.user_id
where l.hash = $1
  and l.expires_at > to_timestamp($2)

-- recordMembershipSeen
update dashboard_seats
set seen_at = to_timestamp($1)
where team_id = $2
  and user_id = $3
  and session_id = $4

-- sessionByHash
select s.id, s.user_id, s.team_id, coalesce(m.email, u.email) as email, s.operator
  and u.operator as operator, s.seen_at
from dashboard_sessions s
join users u on u.id = s.user_id
left join memberships m on m.team_id = s.team_id
  and m.user_id = s.user_id
where s.hash = $1
  and s.expires_at > to_timestamp($2)
  and s.seen_at > to_timestamp($3)

-- sessionOpens
select exists (
  select
  from dashboard_sessions s
  join users u on u.id = s.user_id
  where s.id = $1
    and s.expires_at > to_timestamp($2)
    and (s.operator and u.operator or exists (
    select
    from dashboard_seats d
    where d.team_id = $3
      and d.session_id = s.id
  ))
) as opens

-- sessionsOfPerson
select id, user_agent, created_at, seen_at
from dashboard_sessions
where user_id = $1
  and ($2::uuid is null or team_id = $3)
  and expires_at > to_timestamp($4)
  and seen_at > to_timestamp($5)
order by seen_at desc

-- teamsOfUser
select t.name, m.role
from memberships m
join teams t on t.id = m.team_id
where m.user_id = $1
  and ($2::uuid is null or m.team_id = $3)
order by lower(t.name), t.id

-- touchSession
update dashboard_sessions
set seen_at = to_timestamp($1)
where id = $2
