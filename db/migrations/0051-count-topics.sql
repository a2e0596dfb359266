-- outside a transaction: counts the topics of the contacts that there are, while everybody goes on changing them.
-- Contacts and their moves are seen as of one moment, so what moved until then is in what is counted.
with gone as (
  delete from topic_counts
)
insert into topic_counts (team_id, topic_id, count, folded)
select team_id, topic_id, count(*), true from contacts cross join lateral unnest(topic_ids) topic_id
where topic_ids <> '{}' group by team_id, topic_id;
analyze topic_counts;
