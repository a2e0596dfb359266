/** Explains each error code and its remedy, for the API's description and /docs#CODE. */
import type { Code } from '../../db/errors.ts'
import { MAX_JSON_STRINGS, MAX_JSON_VALUES } from '../http/input.ts'
import { MAX_BODY_BYTES, MAX_UPLOAD_BYTES } from '../http/read-body.ts'

type Explanation = { meaning: string; remedy: string }

const again = 'Repeat the call after `Retry-After` seconds, with the same `idempotency_key`.'

export const EXPLAINED: Readonly<Record<Code, Explanation>> = {
  bad_request: {
    meaning: 'The body isn’t valid JSON, or a field is missing or invalid.',
    remedy:
      'The message names the field and what is wrong with it. Repeating the same call returns the same error.',
  },
  batch_too_large: {
    meaning: 'The batch contains more items than one call accepts. Nothing was stored.',
    remedy: 'Send several batches: 100 emails, 100 WhatsApp messages or 1,000 contacts each.',
  },
  invalid_from: {
    meaning: '`from` isn’t a valid email address.',
    remedy: 'Use `hello@example.com` or `Acme <hello@example.com>`.',
  },
  invalid_headers: {
    meaning: 'A custom header is reserved, invalid or exceeds a limit.',
    remedy:
      'Send at most 10 headers. Names have up to 126 letters, digits and symbols such as `-` and `_`. Values must be printable ASCII.',
  },
  invalid_reply_to: {
    meaning: '`reply_to` isn’t a valid email address.',
    remedy: 'Send one address as a string, with or without a name.',
  },
  invalid_phone: {
    meaning: 'A number in `to` isn’t in E.164 format.',
    remedy: 'Send the country code and the number, such as +15551234567.',
  },
  invalid_params: {
    meaning:
      'A variable of the template is missing from `parameters`, a value isn’t allowed, or `parameters` has an unknown key.',
    remedy: 'Send exactly the variables of the template, such as `body:1`. The message names the problem.',
  },
  template_disabled: {
    meaning: 'The WhatsApp template isn’t approved, or was paused or disabled.',
    remedy: 'Get it approved, or use another template.',
  },
  template_unsupported: {
    meaning: 'The WhatsApp template has a part that this service can’t send, such as a flow or a carousel.',
    remedy: 'Use a template without that part. The message names it.',
  },
  unauthorized: {
    meaning: 'The credentials are missing, invalid, revoked or expired, or the team is suspended.',
    remedy: 'Send `Authorization: Bearer` and an active API key. If the team is suspended, ask the operator.',
  },
  quota_exceeded: {
    meaning: 'A quota is reached: emails or messages of the period, contacts, or stored attachments.',
    remedy: 'Wait for the next period, upgrade the plan, or delete data you don’t need.',
  },
  insufficient_scope: {
    meaning:
      'The credential doesn’t have the scope for this endpoint, or the endpoint only accepts API keys.',
    remedy: 'Use an API key with that scope.',
  },
  domain_not_allowed: {
    meaning: 'The API key is limited to one domain, and `from` has a different one.',
    remedy: 'Send from the domain of the key, or use a key without a domain.',
  },
  contact_not_found: {
    meaning: 'The team has no contact with this email address.',
    remedy: 'Create it first.',
  },
  not_found: {
    meaning:
      'The endpoint doesn’t exist, or the team has no template, topic, upload, broadcast or scheduled message with this ID.',
    remedy: 'Check the path on this page, and the ID in the dashboard.',
  },
  method_not_allowed: {
    meaning: 'The endpoint doesn’t accept this method.',
    remedy: 'Use a method from the `Allow` header.',
  },
  contact_exists: {
    meaning: 'A contact with this email address already exists. Nothing was changed.',
    remedy: 'Change it with `PATCH`, or use the bulk upsert.',
  },
  contact_suppressed: {
    meaning: 'The contact bounced or complained, so the API can’t resubscribe it.',
    remedy: 'Lift the suppression in the dashboard, with a reason.',
  },
  invalid_state: {
    meaning:
      'The state of the broadcast doesn’t allow this call, or something it needs is missing. If the call is about a scheduled message, its scheduled time has passed.',
    remedy:
      'If something is missing, add what the error lists, then repeat the call. A scheduled message can’t be changed after its scheduled time.',
  },
  payload_too_large: {
    meaning: `The body is larger than ${MAX_BODY_BYTES / 1024 ** 2} MiB (uploads: ${MAX_UPLOAD_BYTES / 1024 ** 2} MiB), or an email with its attachments is too large for mail servers. The code is also returned if the JSON contains more than ${MAX_JSON_STRINGS.toLocaleString('en')} strings, arrays and objects, or ${MAX_JSON_VALUES.toLocaleString('en')} values.`,
    remedy:
      'Send smaller batches. Send files as base64 strings, not as arrays of bytes, or upload them first.',
  },
  unsupported_media_type: {
    meaning: 'The body isn’t `application/json` in UTF-8, or it is compressed.',
    remedy: 'Send `Content-Type: application/json`, uncompressed.',
  },
  from_domain_not_verified: {
    meaning:
      'The domain of `from` isn’t a verified domain of the team. The message says whether the domain is pending.',
    remedy: 'Add the domain, publish its DNS records, then verify it.',
  },
  rate_limited: { meaning: 'The team sends faster than its send rate.', remedy: again },
  internal_error: {
    meaning: 'An error of the service. The message includes the request ID.',
    remedy:
      'Repeat the call with the same `idempotency_key`. If the error persists, send the request ID to the operator.',
  },
  unavailable: {
    meaning:
      'The service couldn’t process the call in time. Its database is unavailable, or it is overloaded by other requests.',
    remedy: again,
  },
}
