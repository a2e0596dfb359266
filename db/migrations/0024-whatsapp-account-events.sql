-- What Meta last said of accounts and numbers: quality, limits, names, restrictions. For operators.
create table whatsapp_account_events (
  account_id text not null,
  -- Meta's field, such as account_update.
  field text not null,
  -- The digits of the number that it is about; empty if it is about the account.
  number text not null,
  occurred_at timestamptz not null,
  detail text not null,
  primary key (account_id, field, number)
);
