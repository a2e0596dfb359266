-- endpointsToNotify
select team_id, id, types, domain, state = 'enabled' as enabled
from webhook_endpoints w
where team_id = any($1::uuid[])
  and (w.state = 'enabled' or w.disabled_at > now() - $2 * interval '1 day')
order by team_id, id
