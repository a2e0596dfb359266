with change as (
  select e.team_id, e.id, case when array_position($1::text[], c.status) > array_position($2::text[],
    e.status) then c.status else e.status end as status, coalesce(e.provider_message_id,
    c.provider_message_id) as provider_message_id, coalesce(e.size_kb, c.size_kb) as size_kb, case
    when c.kind = 'none left' then null when c.kind = 'an attempt'
    and e.provider_message_id is not distinct from c.seen_id
    and e.pending_recipients is not distinct from case when c.seen_pending is null then null else array(
    select json_array_elements_text(c.seen_pending)
  ) end then case when c.pending is null then null else array(
    select json_array_elements_text(c.pending)
  ) end else e.pending_recipients end as pending_recipients
  from email_states e
  join unnest($3::uuid[], $4::uuid[], $5::text[], $6::text[], $7::float8[], $8::text[], $9::json[],
    $10::text[], $11::json[]) as c (team_id, email_id, status, provider_message_id, size_kb, kind, pending,
    seen_id, seen_pending) on e.team_id = c.team_id
    and e.id = c.email_id
)
update email_states e
set status = c.status, provider_message_id = c.provider_message_id, size_kb = c.size_kb,
  pending_recipients = c.pending_recipients
from change c
where e.team_id = c.team_id
  and e.id = c.id
  and (e.status, e.provider_message_id, e.size_kb, e.pending_recipients) is distinct from (c.status,
    c.provider_message_id, c.size_kb, c.pending_recipients)
