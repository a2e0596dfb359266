-- draftOf
select id, html, body_text as text, slots, version_id, saved_by, saved_at
from template_drafts
where team_id = $1
  and template_id = $2

-- templatesWithDraft
select template_id
from template_drafts
where team_id = $1
