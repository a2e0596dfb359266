-- outside a transaction: finds the teams of a number, and what waits for a number that isn't the default
drop index concurrently if exists teams_whatsapp_number;

create index concurrently teams_whatsapp_number on teams (whatsapp_number) where whatsapp_number is not null;

drop index concurrently if exists whatsapp_messages_number;

create index concurrently whatsapp_messages_number on whatsapp_messages (phone_number_id, team_id)
  where phone_number_id is not null and (unfinished or due_at is not null);
