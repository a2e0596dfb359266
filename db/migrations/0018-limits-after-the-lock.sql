-- What a team is subscribed to as committed by now, however long the statement that asks has waited for a lock: a
-- volatile function sees what has been committed since. Whole rows, so that new columns of both come along.
create function subscription_now(of_team uuid) returns table (subscription subscriptions, plan plans)
  language plpgsql volatile as $$
begin
  return query select s, p from subscriptions s join plans p on p.key = s.plan_key where s.team_id = of_team;
end $$;
