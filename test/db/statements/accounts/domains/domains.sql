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

-- insertDomain
insert into domains (team_id, id, name, status, dkim_selector, dkim_public_key, dkim_private_key, created_at,
  verified_at)
values ($1, $2, $3, $4, $5, $6, $7, to_timestamp($8), to_timestamp($9))
returning id, name, status, dkim_selector, dkim_public_key, next_dkim_selector, next_dkim_public_key,
  created_at, verified_at, missing_since, failing_since, ed25519_selector, ed25519_public_key, return_path,
  return_path_rejected_at, return_path_response

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
