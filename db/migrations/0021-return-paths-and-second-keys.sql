-- Whether return addresses are at bounces.NAME, and when the relay last rejected them there, with its response. Version
-- 0.1.0 goes on to use RETURN_PATH_DOMAIN.
alter table domains add column return_path boolean not null default false;
alter table domains add column return_path_rejected_at timestamptz;
alter table domains add column return_path_response text;

-- The second DKIM key, for Ed25519 signatures (RFC 8463); null of most. The private key is sealed as the other one is.
-- Version 0.1.0 doesn't seal it again when SECRET_KEY changes.
alter table domains add column ed25519_selector text;
alter table domains add column ed25519_public_key text;
alter table domains add column ed25519_private_key bytea;
