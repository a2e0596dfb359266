-- claimTokens
with given as materialized (
  select *
  from unnest($1::text[], $2::text[], $3::timestamptz[]) as t (digest, body_digest, accepted_until)
), kept as (
  insert into relay_tokens as k (digest, body_digest, accepted_until)
  select digest, body_digest, accepted_until
  from given
  order by digest
  on conflict (digest) do
  update
  set accepted_until = k.accepted_until
  returning digest, body_digest
)
select g.digest
from given g
join kept k using (digest)
where g.body_digest <> k.body_digest

-- deleteOldTokens
with old as (
  select digest
  from relay_tokens
  where accepted_until < to_timestamp($1)
  limit $2
), gone as (
  delete from relay_tokens
  where digest in (
    select digest
    from old
  )
  returning 1
)
select count(*) as count
from gone
