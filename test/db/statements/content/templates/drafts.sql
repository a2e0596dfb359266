-- deleteTemplateDraft
delete from template_drafts
where team_id = $1
  and template_id = $2

-- draftOf
select id, html, body_text as text, slots, version_id, saved_by, saved_at
from template_drafts
where team_id = $1
  and template_id = $2

-- templatesWithDraft
select template_id
from template_drafts
where team_id = $1

-- upsertDraft
insert into template_drafts (team_id, template_id, id, html, body_text, slots, version_id, saved_by, saved_at)
values ($1, $2, $3, $4, $5, $6::text[], $7, $8, to_timestamp($9))
on conflict (team_id, template_id) do
update
set id = excluded.id, html = excluded.html, body_text = excluded.body_text, slots = excluded.slots,
  version_id = excluded.version_id, saved_by = excluded.saved_by, saved_at = excluded.saved_at
