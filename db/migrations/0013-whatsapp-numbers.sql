-- Numbers that WhatsApp messages are sent from, so that teams can have their own. Each belongs to a WhatsApp Business
-- Account, and so do templates.

create table whatsapp_numbers (
  -- 'default': the number of the workers' settings, as the last worker to start had it. It has no credentials here.
  name text primary key check (name ~ '^[a-z0-9-]{1,64}$'),
  phone_number_id text not null unique,
  -- Null only of the default number, without WHATSAPP_BUSINESS_ACCOUNT_ID.
  account_id text,
  -- Sealed with SECRET_KEY, each for its own number and use alone.
  access_token bytea,
  app_secret bytea,
  messages_per_second integer not null default 80 check (messages_per_second between 1 and 10000),
  -- What Meta said at the last check; null before the first, and of the default number.
  display_phone_number text,
  verified_name text,
  quality text,
  messaging_limit text,
  -- Sentences: what an operator still has to set up.
  missing text[] not null default '{}',
  checked_at timestamptz,
  -- Since when an operator has paused it. A pause that Meta causes is the sender's.
  paused_at timestamptz,
  created_at timestamptz not null,
  check (name = 'default' or (account_id is not null and access_token is not null))
);

-- Null: the default number.
alter table teams add column whatsapp_number text references whatsapp_numbers (name);

-- The number that a message is sent from, fixed when it is accepted. Null: the default number.
alter table whatsapp_messages add column phone_number_id text;

-- The account that a template was last found in, or created for. Null: the default number's.
alter table whatsapp_templates add column account_id text;
