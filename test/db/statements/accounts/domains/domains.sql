-- deleteDomain
delete from domains
where team_id = $1
  and name = $2
returning id, name, status, dkim_selector, dkim_public_key, next_dkim_selector, next_dkim_public_key,
  created_at, verified_at, missing_since, failing_since, ed25519_selector, ed25519_public_key, return_path,
  return_path_rejected_at, return_path_response

-- domainById
select id, name, status, dkim_selector, dkim_public_key, next_dkim_selector, next_dkim_public_key, created_at,
  verified_at, missing_since, failing_since, ed25519_selector, ed25519_public_key, return_path,
  return_path_rejected_at, return_path_response
from domains
where team_id = $1
  and id = $2

-- domainByName
select id, name, status, dkim_selector, dkim_public_key, next_dkim_selector, next_dkim_public_key, created_at,
  verified_at, missing_since, failing_since, ed25519_selector, ed25519_public_key, return_path,
  return_path_rejected_at, return_path_response
from domains
where team_id = $1
  and name = $2

-- domainsOfTeam
select id, name, status, dkim_selector, dkim_public_key, next_dkim_selector, next_dkim_public_key, created_at,
  verified_at, missing_since, failing_since, ed25519_selector, ed25519_public_key, return_path,
  return_path_rejected_at, return_path_response
from domains
where team_id = $1
order by name

-- domainsToRecheck
select team_id, id, name, status, dkim_selector, dkim_public_key, next_dkim_selector, next_dkim_public_key,
  created_at, verified_at, missing_since, failing_since, ed25519_selector, ed25519_public_key, return_path,
  return_path_rejected_at, return_path_response
from domains
where status = 'verified'
  and (checked_at is null or checked_at < to_timestamp($1))
  and not team_id in (
  select id
  from teams
  where test
)
order by checked_at nulls first
limit $2

-- insertDomain
insert into domains (team_id, id, name, status, dkim_selector, dkim_public_key, dkim_private_key, created_at,
  verified_at)
values ($1, $2, $3, $4, $5, $6, $7, to_timestamp($8), to_timestamp($9))
returning id, name, status, dkim_selector, dkim_public_key, next_dkim_selector, next_dkim_public_key,
  created_at, verified_at, missing_since, failing_since, ed25519_selector, ed25519_public_key, return_path,
  return_path_rejected_at, return_path_response

-- lockSealedKeys
select team_id, id, name, dkim_private_key, next_dkim_private_key, ed25519_private_key
from domains
order by team_id, id
for update

-- markDomainVerified
update domains
set status = 'verified', verified_at = coalesce(verified_at, to_timestamp($1)), found_at = to_timestamp($2),
  missing_since = null, failing_since = null
where team_id = $3
  and id = $4
returning id, name, status, dkim_selector, dkim_public_key, next_dkim_selector, next_dkim_public_key,
  created_at, verified_at, missing_since, failing_since, ed25519_selector, ed25519_public_key, return_path,
  return_path_rejected_at, return_path_response

-- promoteNextKey
update domains
set dkim_selector = next_dkim_selector, dkim_public_key = next_dkim_public_key,
  dkim_private_key = next_dkim_private_key, next_dkim_selector = null, next_dkim_public_key = null,
  next_dkim_private_key = null, status = 'verified', verified_at = coalesce(verified_at, to_timestamp($1)),
  found_at = to_timestamp($2), missing_since = null, failing_since = null
where team_id = $3
  and id = $4
  and next_dkim_selector = $5
returning id, name, status, dkim_selector, dkim_public_key, next_dkim_selector, next_dkim_public_key,
  created_at, verified_at, missing_since, failing_since, ed25519_selector, ed25519_public_key, return_path,
  return_path_rejected_at, return_path_response

-- readDomainQuota
select p.key as plan, p.domains_limit, (
  select count(*)
  from domains
  where team_id = $1
) as domains
from subscriptions s
join plans p on p.key = s.plan_key
where s.team_id = $2

-- recordRechecks
with recheck as (
  select *
  from unnest($1::uuid[], $2::uuid[], $3::text[], $4::bool[]) as l (team_id, id, dkim_selector, found)
), d as materialized (
  select *
  from domains
  where (team_id, id) in (
    select team_id, id
    from recheck
  )
  order by team_id, id
  for update
), noted as (
  update domains
  set checked_at = to_timestamp($5), found_at = case when recheck.found then to_timestamp($6)
    else d.found_at end, missing_since = case when recheck.found then null when not recheck.found
    and d.found_at is not null then coalesce(d.missing_since, to_timestamp($7)) else d.missing_since end,
    failing_since = case when recheck.found then null when not recheck.found
    and d.missing_since <= to_timestamp($8) then coalesce(d.failing_since, to_timestamp($9))
    else d.failing_since end
  from recheck
  join d using (team_id, id, dkim_selector)
  where domains.team_id = d.team_id
    and domains.id = d.id
  returning domains.*, d.failing_since as known_since
)
select team_id, id, name, status, dkim_selector, dkim_public_key, next_dkim_selector, next_dkim_public_key,
  created_at, verified_at, missing_since, failing_since, ed25519_selector, ed25519_public_key, return_path,
  return_path_rejected_at, return_path_response, (exists (
  select
  from webhook_endpoints w
  where w.team_id = noted.team_id
    and (w.state = 'enabled' or w.disabled_at > now() - $10 * interval '1 day')
)) as has_listeners
from noted
where failing_since is not null
  and known_since is null

-- recordRejectedReturnPaths
update domains d
set return_path_rejected_at = to_timestamp($1), return_path_response = r.response
from (
  select distinct on (team_id, name) *
  from unnest($2::uuid[], $3::text[], $4::text[]) as r (team_id, name, response)
  order by team_id, name
) r
where d.team_id = r.team_id
  and d.name = r.name
  and d.return_path
  and d.return_path_rejected_at is null

-- rejectedReturnPaths
select team_id, name, return_path_rejected_at as at, coalesce(return_path_response, '') as response
from domains
where return_path
  and return_path_rejected_at is not null
order by return_path_rejected_at desc
limit $1

-- sendingDomains
select team_id, name, dkim_selector, dkim_private_key, ed25519_selector, ed25519_private_key, return_path
  and return_path_rejected_at is null as return_path
from domains
where (team_id, name) in (
  select *
  from unnest($1::uuid[], $2::text[]) as ref (team_id, name)
)
  and status = 'verified'

-- storeNextKey
update domains
set next_dkim_selector = $1, next_dkim_public_key = $2, next_dkim_private_key = $3
where team_id = $4
  and id = $5
  and ($6::text is null or $7 = coalesce(next_dkim_selector, dkim_selector))
returning id, name, status, dkim_selector, dkim_public_key, next_dkim_selector, next_dkim_public_key,
  created_at, verified_at, missing_since, failing_since, ed25519_selector, ed25519_public_key, return_path,
  return_path_rejected_at, return_path_response

-- storeReturnPath
update domains
set return_path = $1, return_path_rejected_at = null, return_path_response = null
where team_id = $2
  and id = $3
returning id, name, status, dkim_selector, dkim_public_key, next_dkim_selector, next_dkim_public_key,
  created_at, verified_at, missing_since, failing_since, ed25519_selector, ed25519_public_key, return_path,
  return_path_rejected_at, return_path_response

-- storeSecondKey
update domains
set ed25519_selector = $1, ed25519_public_key = $2, ed25519_private_key = $3
where team_id = $4
  and id = $5
returning id, name, status, dkim_selector, dkim_public_key, next_dkim_selector, next_dkim_public_key,
  created_at, verified_at, missing_since, failing_since, ed25519_selector, ed25519_public_key, return_path,
  return_path_rejected_at, return_path_response

-- teamOfDomain
select team_id
from domains
where name = $1
  and status = 'verified'
  and not team_id in (
  select id
  from teams
  where test
)
order by exists (
  select
  from teams s
  where s.id = domains.team_id
    and s.suspended_at is not null
), verified_at
limit 1

-- updateSealedKeys
update domains d
set dkim_private_key = k.dkim_private_key, next_dkim_private_key = k.next_dkim_private_key,
  ed25519_private_key = k.ed25519_private_key
from unnest($1::uuid[], $2::uuid[], $3::bytea[], $4::bytea[], $5::bytea[]) as k (team_id, id,
  dkim_private_key, next_dkim_private_key, ed25519_private_key)
where d.team_id = k.team_id
  and d.id = k.id
