-- outside a transaction: copies the states of all emails lot by lot, while the version before goes on sending.
call copy_email_states();
analyze email_states;
