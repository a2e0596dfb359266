-- A known text sealed with SECRET_KEY: a process that cannot open it was given another key. One row for the service.
create table secret_canary (
  id boolean primary key default true check (id),
  sealed bytea not null
);
