-- Whether an address has another form in ASCII. The planner has statistics of a column: of the expression it thought that
-- nearly all addresses differ, and read all contacts of all teams to find that none does.
drop index contacts_identity_substring;
alter table contacts add column has_two_forms boolean not null
  generated always as (identity <> lower(email)) stored;
-- The few, by their team; with what a search looks at.
create index contacts_two_forms on contacts (team_id, id) include (identity) where has_two_forms;
