-- Reports that were shown are known by the moment at which they were (db/postgres/seen.sql.ts).
alter table reports drop column parked_at;
