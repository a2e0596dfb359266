-- Tokens that relays' posts were signed with, where the signature doesn't cover the body: each is good for one body.
create table relay_tokens (
  -- SHA-256 in base64url, of the token and of the body.
  digest text primary key,
  body_digest text not null,
  -- The last moment at which the signed time is accepted. Older rows are deleted.
  accepted_until timestamptz not null
);
create index relay_tokens_until on relay_tokens (accepted_until);
