-- insertDomain
insert into domains (team_id, id, name, status, dkim_selector, dkim_public_key, dkim_private_key, created_at,
  verified_at)
values ($1, $2, $3, $4, $5, $6, $7, to_timestamp($8), to_timestamp($9))
returning id, name, status, dkim_selector, dkim_public_key, next_dkim_selector, next_dkim_public_key,
  created_at, verified_at, missing_since, failing_since, ed25519_selector, ed25519_public_key, return_path,
  return_path_rejected_at, return_path_response
