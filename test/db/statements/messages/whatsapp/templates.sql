-- whatsappTemplatesOfTeam
select t.team_id, t.id, t.name, t.language, t.category, t.status, t.definition, t.slots, t.url_buttons,
  t.parts, nullif(t.unsupported, $1) as unsupported, t.fault, t.created_at, t.updated_at, t.synced_at,
  t.quality, t.announced_category
from whatsapp_templates t
where t.team_id = $2
order by t.id
