-- The Date of an email that was first claimed more than an hour after its time, once an attempt left something to do.
-- Version 0.1.0 doesn't read it: its next attempt has the date of the acceptance again.
alter table email_states add column dated_at timestamptz;
