-- What a broadcast was braked for last: of how many emails that had left, how many bounced or were complained about,
-- and the percentage above which that is too many.
alter table broadcasts add brake json;
-- What stands still until a person looks.
create index broadcasts_stopped on broadcasts (team_id, id) where state_reason is not null;
