-- What bounces say about our own set-up, the last of each sender and recipient domain. Deleted after a day.
create table sender_reports (
  sender text not null,
  domain text not null,
  email_id uuid not null,
  occurred_at timestamptz not null,
  response text not null,
  primary key (sender, domain)
);
