-- A team's subscription, plan and WhatsApp number as committed by now, for accepts of WhatsApp messages. As with
-- subscription_now, however long the calling statement has waited for a lock. Emails don't need the number.
create function whatsapp_account_now(of_team uuid)
  returns table (subscription subscriptions, plan plans, test boolean, number json)
  language plpgsql volatile as $$
begin
  return query
    select s, p, t.test, case when n.name is not null and not t.test then
        json_build_object('phone_number_id', n.phone_number_id, 'account_id', n.account_id) end
    from subscriptions s join plans p on p.key = s.plan_key join teams t on t.id = s.team_id
      left join whatsapp_numbers n on n.name = t.whatsapp_number
    where s.team_id = of_team;
end $$;
