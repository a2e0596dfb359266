-- Finds messages by the X-Request-Id of the call that sent them, and what a team has waiting, in the order of lists.
create index emails_http_request_id on emails (team_id, http_request_id) where http_request_id is not null;
create index whatsapp_requests_http_request_id on whatsapp_requests (team_id, http_request_id)
  where http_request_id is not null;
-- A list of what is queued, and the count of what waits for long, read these alone, however much other teams wait.
create index emails_team_unfinished on emails (team_id, id) where unfinished;
create index whatsapp_messages_team_unfinished on whatsapp_messages (team_id, id) where unfinished;
