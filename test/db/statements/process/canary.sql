-- insertCanary
insert into secret_canary (sealed)
values ($1)
on conflict do nothing

-- readCanary
select sealed
from secret_canary

-- replaceCanary
update secret_canary
set sealed = $1
