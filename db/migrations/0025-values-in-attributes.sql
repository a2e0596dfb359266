-- Whether values in quoted attributes keep = and `. Versions of 0.1.0 keep their bytes, and so do those it still saves.
alter table template_versions add column keeps_equals boolean not null default false;
