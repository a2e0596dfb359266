-- Whose messages a report is about, once that is known: erasing a person drops reports of the team alone.
alter table reports add column team_ids uuid[];
