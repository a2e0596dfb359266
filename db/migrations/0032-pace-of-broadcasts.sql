-- When a broadcast with a rate of its own has used up what it may send, and its figures when it was last braked.
alter table broadcasts add column paced_until timestamptz;
alter table broadcasts add column braked_at_figures json;
