-- isOriginalDatabase
select is_at_home() as is_home
