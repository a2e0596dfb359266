-- A team's WhatsApp number as committed by now, however long the calling statement has waited for a lock. As with
-- subscription_now.
create function whatsapp_number_now(of_team uuid) returns json language plpgsql volatile as $$
begin
  return (
    select json_build_object('phone_number_id', n.phone_number_id, 'account_id', n.account_id)
    from teams t join whatsapp_numbers n on n.name = t.whatsapp_number
    where t.id = of_team and not t.test);
end $$;
