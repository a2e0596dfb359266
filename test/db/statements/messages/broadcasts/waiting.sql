-- countWaitingEmails
select count(*)::integer as count
from (
  select
  from email_states e
  where e.team_id = $1
    and e.broadcast_id = $2
    and e.unfinished
    and not exists (
    select
    from (
      select source_id, data, created_on, source_output ->> 'reason' as reason
      from pgboss.job
      where name = $3
        and state < 'active'
    ) d
    where d.source_id = e.id
  )
    and not exists (
    select
    from (
      select source_id, data, created_on, source_output ->> 'reason' as reason
      from pgboss.job
      where name = $4
        and state < 'active'
    ) d
    where d.source_id = e.id
  )
  limit $5
) counted

-- isUnderWay
select
from email_states e
where e.team_id = $1
  and e.broadcast_id = $2
  and e.unfinished
  and not exists (
  select
  from (
    select source_id, data, created_on, source_output ->> 'reason' as reason
    from pgboss.job
    where name = $3
      and state < 'active'
  ) d
  where d.source_id = e.id
)
  and not exists (
  select
  from (
    select source_id, data, created_on, source_output ->> 'reason' as reason
    from pgboss.job
    where name = $4
      and state < 'active'
  ) d
  where d.source_id = e.id
)

-- lostExpansions
select b.team_id, b.id as broadcast_id
from broadcasts b
where b.state in ('scheduled', 'sending')
  and not exists (
  select
  from pgboss.job j
  where j.name = $1
    and j.id = b.id
    and j.state <= 'active' offset 0
)
  and not exists (
  select
  from pgboss.job d
  where d.name = $2
    and d.source_id = b.id
    and d.state <= 'active' offset 0
)
limit $3
