-- When each WhatsApp template was last found in the provider's list: that it was changed here says nothing of that.
alter table whatsapp_templates add column synced_at timestamptz;
