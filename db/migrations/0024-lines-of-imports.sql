-- The line in its file that each record of an import begins in: a record may be many lines long.
alter table contact_imports add column lines integer[];
