-- Few emails of many are bounced or complained about, and people ask for just these. Others' status changes nothing here,
-- so their updates stay HOT.
alter table email_states add column rare_status text
  generated always as (case when status in ('bounced', 'complained') then status end) stored;
create index email_states_rare on email_states (team_id, rare_status, id) where rare_status is not null;
