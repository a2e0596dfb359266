-- Parts of addresses in ASCII form, of the few contacts whose address has another one too.
create index contacts_identity_substring on contacts using gin (identity gin_trgm_ops)
  where identity <> lower(email);
