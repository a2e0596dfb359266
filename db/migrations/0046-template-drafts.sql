-- Drafts: what a team's people write and look at before it is published as a version of its template.
create table template_drafts (
  team_id uuid not null,
  template_id uuid not null,
  -- Another one at each saving, by which whoever saves or publishes says what was seen.
  id uuid not null,
  html text not null,
  body_text text not null,
  slots text[] not null,
  -- The version that was in use when the draft was begun.
  version_id uuid not null,
  saved_by text not null,
  saved_at timestamptz not null,
  primary key (team_id, template_id),
  foreign key (team_id, template_id) references templates (team_id, id) on delete cascade
);

-- Who made a version; null for those from before.
alter table template_versions add column created_by text;
