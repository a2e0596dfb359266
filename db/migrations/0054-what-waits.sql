-- What waits is what is queued, nearly all of it: taken for independent, the two conditions count as few as their product.
create statistics email_states_waiting (mcv) on status, unfinished from email_states;
