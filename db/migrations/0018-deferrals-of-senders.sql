-- Deferrals of a sender in a row that begin with the same words: {key, messages, domains, slowed}. Null: there are none.
alter table senders add column deferrals json;
