-- outside a transaction: an id alone leads to its message, however many teams there are.
drop index concurrently if exists emails_request;
create index concurrently emails_request on emails (http_request_id, team_id) where http_request_id is not null;
drop index concurrently if exists emails_http_request_id;
drop index concurrently if exists whatsapp_requests_request;
create index concurrently whatsapp_requests_request on whatsapp_requests (http_request_id, team_id)
  where http_request_id is not null;
drop index concurrently if exists whatsapp_requests_http_request_id;
-- Ids ascend with time, as the table does: a few bytes for each stretch of it, and nothing for a row.
drop index concurrently if exists emails_ids;
create index concurrently emails_ids on emails using brin (id uuid_minmax_multi_ops (values_per_range = 16))
  with (autosummarize = on);
drop index concurrently if exists whatsapp_messages_ids;
create index concurrently whatsapp_messages_ids on whatsapp_messages
  using brin (id uuid_minmax_multi_ops (values_per_range = 16)) with (autosummarize = on);
