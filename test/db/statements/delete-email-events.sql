delete from email_events
where team_id = $1
  and email_id = any($2::uuid[])
