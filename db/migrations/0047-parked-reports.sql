-- When a report was parked: what is done with all parked ones that a page has shown must not take in later ones, and a
-- report that waited for its message was received long before. Of those parked so far, when they came must do.
alter table reports add column parked_at timestamptz;
