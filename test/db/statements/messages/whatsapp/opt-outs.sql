-- optOutsOfTeam
select recipient as to, at, by
from whatsapp_opt_outs
where team_id = $1
  and is_out
  and recipient like '+%'
order by at desc, recipient
