-- What a session holds is settled when it begins, so that a session seized earlier never grows: a seat for each team
-- with the role of then, and the operator's flag of then. A link that somebody else has seen opens one team alone.
alter table login_links add team_id uuid references teams (id) on delete cascade;

alter table dashboard_sessions
  -- The one team of a session begun by such a link; null: all that the person had.
  add team_id uuid references teams (id) on delete cascade,
  add operator boolean not null default false;

create table dashboard_seats (
  team_id uuid not null,
  user_id uuid not null,
  session_id uuid not null references dashboard_sessions (id) on delete cascade,
  role text not null,
  -- To the minute: when this team's pages were last used.
  seen_at timestamptz,
  primary key (team_id, user_id, session_id),
  -- Whoever leaves a team loses its pages with the membership, and does not get them back with a later one.
  foreign key (team_id, user_id) references memberships (team_id, user_id) on delete cascade
);
create index dashboard_seats_session on dashboard_seats (session_id);

-- The address as this team wrote it, since how others write it would tell that the person is known elsewhere. Null, as
-- a process of the version before leaves it: as the person's own row has it.
alter table memberships add email text;

-- What the sessions and links of before held when they began is not known: everybody signs in once more.
delete from dashboard_sessions;
delete from login_links;
