-- A template's name once per team, so that nobody sends the wrong one of two; later ones of a name get their id's end.
update templates t set name = left(name, 180) || ' (' || right(id::text, 8) || ')'
where exists (select from templates o where o.team_id = t.team_id and o.name = t.name and o.id < t.id);

create unique index templates_name on templates (team_id, name);
