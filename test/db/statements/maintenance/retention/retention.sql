-- emptyEmails
with candidate as materialized (
  select team_id, id,
    row_number() over (partition by (ctid::text::point)[0] order by coalesce(pg_column_size(html),
    0) + coalesce(pg_column_size(body_text), 0) + coalesce(pg_column_size(variables),
    0) + coalesce(pg_column_size(headers), 0) desc) as of_page
  from (
    select e.team_id, e.id, e.ctid, e.html, e.body_text, e.variables, e.headers
    from accepted_emails e
    where e.id > $1
      and e.id <= $2
      and (e.html <> '' or e.body_text <> '' or e.variables::text <> '{}' or e.headers is not null)
      and exists (
      select
      from email_states s
      where s.team_id = e.team_id
        and s.id = e.id
        and not s.unfinished
        and s.scheduled_at is null
    )
    order by e.id
    limit $3
  ) e
), old as materialized (
  select team_id, id
  from email_states
  where (team_id, id) in (
    select team_id, id
    from candidate
    where of_page <= $4
  )
    and not unfinished
  order by team_id, id
  for no key update skip locked
), emptied as (
  update accepted_emails e
  set html = case when e.html is not null then '' end, body_text = case
    when e.body_text is not null then '' end, variables = case
    when e.variables is not null then '{}'::json end, headers = null
  from old
  where e.team_id = old.team_id
    and e.id = old.id
)
select count(*) as found, max(id::text) as last, (
  select count(*)
  from old
) as done
from candidate
