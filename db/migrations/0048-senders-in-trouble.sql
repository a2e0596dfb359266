-- Senders in trouble, looked up before each claim of webhooks: few of as many as there are endpoints.
create index senders_in_trouble on senders (key) where troubles > 0 or paused_until is not null;
