-- Reports that the hook of a WhatsApp number received. The list of providers gets longer, so that every stored row fits it.
alter table reports drop constraint reports_provider_check;
alter table reports add constraint reports_provider_check check (provider in (
  'smtp', 'ses', 'mailgun', 'sendgrid', 'postmark', 'brevo', 'whatsapp', 'whatsapp-number', 'test')) not valid;
