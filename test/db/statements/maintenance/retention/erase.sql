-- clearSkips
update broadcast_skips
set email = '', detail = '', person = null
where team_id = $1
  and lower(email) = any($2::text[])

-- deleteReportsNaming
with stretch as (
  select id, state, team_ids, body
  from reports
  where id > $1
  order by id
  limit $2
), gone as (
  delete from reports
  where id in (
    select id
    from stretch
    where state <> 'pending'
      and team_ids = $3::uuid[]
      and lower(encode(body, 'escape')) ~ $4
  )
  returning 1
)
select (
  select max(id::text)
  from stretch
) as last, (
  select count(*)
  from stretch
) as checked, (
  select count(*)
  from gone
) as deleted

-- deleteTriesOf
delete from webhook_events
where team_id = $1
  and message_id = any($2::uuid[])

-- deleteWebhooksAbout
delete from webhook_messages
where team_id = $1
  and id in (
  select id
  from webhook_messages
  where team_id = $2
    and subject_id = any($3::uuid[])
  order by id
  for update
)
returning id

-- deleteWebhooksNaming
with stretch as materialized (
  select team_id, id, type, subject_id, body
  from webhook_messages
  where team_id = $1
    and id > $2
  order by id
  limit $3
), gone as (
  delete from webhook_messages
  where team_id = $4
    and id in (
    select id
    from webhook_messages
    where team_id = $5
      and id in (
      select id
      from stretch w
      where split_part(w.type, '.', 1) in ('email', 'contact')
        and lower(w.body) ~ $6
        and lower(concat_ws(' ', (w.body::json -> 'data') ->> $7, (w.body::json -> 'data') ->> $8,
          (w.body::json -> 'data') ->> $9, (w.body::json -> 'data') ->> $10, (w.body::json -> 'data') ->> $11,
          (w.body::json -> 'data') ->> $12)) ~ $13
        and not exists (
        select
        from email_states s
        where s.team_id = w.team_id
          and s.id = w.subject_id
      )
        and not exists (
        select
        from contacts c
        where c.team_id = w.team_id
          and c.id = w.subject_id
      )
    )
    order by id
    for update
  )
  returning id
)
select (
  select max(id::text)
  from stretch
) as last, (
  select count(*)
  from stretch
) as checked, array(
  select id
  from gone
) as gone

-- lockEmailsOfPerson
select
from email_states
where team_id = $1
  and id = any($2::uuid[])
order by id
for update

-- lockEmailsOfPerson
select id, to_emails, coalesce(first_cc, first_bcc) is not null as has_copies, unfinished
  or due_at is not null as waits
from emails
where team_id = $1
  and id = any($2::uuid[])
order by id

-- rewriteEmails
update email_events v
set recipient = null, detail = '', contact_id = null, effect = null
from unnest($1::uuid[], $2::bool[]) as n (id, redact_all)
where v.team_id = $3
  and v.email_id = n.id
  and (n.redact_all or lower(coalesce(v.recipient, '') || ' ' || v.detail) ~ $4)

-- rewriteEmails
with n as materialized (
  select id, to as recipients, empty as emptied
  from unnest($1::uuid[], $2::json[], $3::bool[]) as n (id, to, empty)
), state as (
  update email_states s
  set pending_recipients = nullif(array(
    select p
    from unnest(s.pending_recipients) p
    where recipient_identities(array[p]) && recipient_identities(array(
      select json_array_elements_text(n.recipients)
    ))
  ), '{}'), contact_id = null, rewrites = s.rewrites + 1
  from n
  where s.team_id = $4
    and s.id = n.id
)
update accepted_emails e
set to_emails = array(
  select json_array_elements_text(n.recipients)
), contact_id = null, person = null, rewrites = e.rewrites + 1, subject = case when n.emptied then ''
  else e.subject end, html = case when n.emptied and e.html is not null then '' else e.html end,
  body_text = case when n.emptied and e.body_text is not null then '' else e.body_text end, variables = case
  when n.emptied and e.variables is not null then '{}'::json else e.variables end, headers = case
  when n.emptied then null else e.headers end, attachments = case when n.emptied then null
  else e.attachments end
from n
where e.team_id = $5
  and e.id = n.id

-- rewriteNames
update accepted_emails e
set idempotency_key = case when lower(e.idempotency_key) !~ $1 then e.idempotency_key end, reply_to = case
  when lower(e.reply_to) ~ $2 then '' else e.reply_to end, tags = coalesce((
  select json_agg(tag order by place)
  from json_array_elements_text(e.tags)
  with ordinality t (tag, place)
  where lower(tag) !~ $3
), '[]')
where e.team_id = $4
  and e.id = any($5::uuid[])
  and lower(concat_ws(' ', e.idempotency_key, e.reply_to, e.tags)) ~ $6
