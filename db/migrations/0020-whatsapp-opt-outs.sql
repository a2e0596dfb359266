-- Recipients who don't want marketing messages of a team by WhatsApp, and those who want them again.
create table whatsapp_opt_outs (
  team_id uuid not null references teams (id) on delete cascade,
  -- The number in E.164 form. After an erasure 'erased:' and a keyed hash of it.
  recipient text not null,
  -- False: they came back.
  is_out boolean not null,
  -- When they said so, by Meta's clock. What is older changes nothing.
  at timestamptz not null,
  -- 'user_preferences', '131050', 'text', 'button', 'cli', or a user's email address.
  by text not null,
  primary key (team_id, recipient)
);
create index whatsapp_opt_outs_newest on whatsapp_opt_outs (team_id, at desc) where is_out;
