-- An invitation lives for days: it holds at most the role that its person had when it was made; null: what they have.
alter table login_links add role text;
