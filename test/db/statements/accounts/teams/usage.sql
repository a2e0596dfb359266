-- countRows
select count(*) as count
from email_states
where team_id = $1
  and id >= $2
  and id < $3
  and created_at >= to_timestamp($4)
  and created_at < to_timestamp($5)

-- countRows
select count(*) as count
from whatsapp_messages
where team_id = $1
  and id >= $2
  and id < $3
  and created_at >= to_timestamp($4)
  and created_at < to_timestamp($5)
