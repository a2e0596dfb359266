-- Email templates and their immutable versions: an email keeps the version it was accepted with.
create table templates (
  team_id uuid not null references teams (id) on delete cascade,
  id uuid not null,
  name text not null,
  version_id uuid not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  primary key (team_id, id)
);

create table template_versions (
  team_id uuid not null references teams (id) on delete cascade,
  id uuid not null,
  -- It may be gone: emails are rendered from their version for ever, whatever becomes of the template.
  template_id uuid not null,
  html text not null,
  body_text text not null,
  -- Slots that the html or the text declares, in order of first appearance.
  slots text[] not null,
  -- Whether its emails carry List-Unsubscribe headers; then unsubscribe_url is one of its slots.
  list_unsubscribe boolean not null default false,
  created_at timestamptz not null,
  primary key (team_id, id)
);
create index template_versions_template on template_versions (team_id, template_id, id);
