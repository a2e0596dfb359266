-- hasErased
select 1
from erased_contacts
where team_id = $1
