-- The figures of broadcasts come from what moved too (moved_figures), folded as the daily figures are: one way for both.
create table broadcast_figures (
  team_id uuid not null,
  broadcast_id uuid not null,
  figure text not null,
  count integer not null,
  primary key (team_id, broadcast_id, figure),
  foreign key (team_id, broadcast_id) references broadcasts (team_id, id) on delete cascade
);
create index moved_figures_of_broadcasts on moved_figures (team_id, broadcast_id) where broadcast_id is not null;

drop trigger note_broadcast_move on emails;
drop function note_broadcast_move();

-- What there is already is counted once. Processes of the version before still append to broadcast_moves, which a later
-- version drops.
update moved_figures set broadcast_id = null where broadcast_id is not null;
insert into broadcast_figures (team_id, broadcast_id, figure, count)
select team_id, broadcast_id, figure, sum(count) from broadcast_moves where figure <> 'made'
group by team_id, broadcast_id, figure having sum(count) <> 0;

-- They may run on for a while: the figures are counted once more after that.
delete from upkeep where kind = 'figures';
insert into upkeep (kind, done_until) values ('figures', now() + interval '1 hour');
