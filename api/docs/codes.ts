/** What each code of a refusal means, and what to do about it: for the description and for /docs#CODE. */
import type { Code } from '../../db/errors.ts'
import { MAX_JSON_STRINGS, MAX_JSON_VALUES } from '../http/input.ts'
import { MAX_BODY_BYTES, MAX_UPLOAD_BYTES } from '../http/read-body.ts'

type Explained = { meaning: string; remedy: string }

const again = 'Repeat the call after `Retry-After` seconds, with the same `idempotency_key`.'

export const EXPLAINED: Readonly<Record<Code, Explained>> = {
  bad_request: {
    meaning: 'The body is no valid JSON, or a field is missing or malformed.',
    remedy: 'The message names the field and what it must be. Repeating the same call will not help.',
  },
  batch_too_large: {
    meaning: 'A batch holds more items than one call takes. Nothing of it was done.',
    remedy: 'Send several batches: 100 emails, 100 WhatsApp messages or 1,000 contacts each.',
  },
  invalid_from: {
    meaning: '`from` is no address.',
    remedy: 'Write `hello@example.com` or `Acme <hello@example.com>`.',
  },
  invalid_headers: {
    meaning: 'A custom header is reserved, malformed or beyond the limits.',
    remedy: 'At most 10 headers, names of letters, digits and hyphens, values of printable ASCII.',
  },
  invalid_reply_to: {
    meaning: '`reply_to` is no address.',
    remedy: 'Give one address as a string, with or without a name.',
  },
  invalid_phone: {
    meaning: 'A number in `to` is not in E.164 form.',
    remedy: 'Write the country code and the number, such as +15551234567.',
  },
  invalid_params: {
    meaning:
      'A slot that the template declares is missing from `parameters`, or there is a key that it does not know.',
    remedy: 'Give exactly the slots of the template, such as `body:1`.',
  },
  template_disabled: {
    meaning: 'The WhatsApp template is not approved, or was paused or disabled.',
    remedy: 'Have it approved, or use another one.',
  },
  template_unsupported: {
    meaning: 'The WhatsApp template has parts that this service does not send, such as a media header.',
    remedy: 'Use a template of text, and buttons with at most a dynamic URL.',
  },
  unauthorized: {
    meaning: 'The credential is missing, malformed, unknown, revoked or expired, or its team is suspended.',
    remedy: 'Send `Authorization: Bearer` and an API key.',
  },
  quota_exceeded: {
    meaning: 'The allowance of the period, or that of contacts or of stored attachments, is reached.',
    remedy: 'Wait for the next period, take a larger plan, or delete what is not needed.',
  },
  insufficient_scope: {
    meaning: 'The key lacks the scope that the endpoint needs, or the endpoint takes API keys only.',
    remedy: 'Create a key with that scope.',
  },
  domain_not_allowed: {
    meaning: 'The key is bound to another domain than that of `from`.',
    remedy: 'Send from the domain of the key, or use a key without one.',
  },
  contact_not_found: { meaning: 'The team has no contact with that email.', remedy: 'Create it first.' },
  not_found: {
    meaning:
      'There is nothing at this path, or nothing of the team has this id: a template, a topic, an upload, a broadcast, or a message that was to be cancelled or moved.',
    remedy: 'Compare the path with this page, and the id that you gave with the dashboard.',
  },
  method_not_allowed: {
    meaning: 'The path is known, but not with this method.',
    remedy: 'Use a method of the `Allow` header.',
  },
  contact_exists: {
    meaning: 'A contact with that email exists already. Nothing was changed.',
    remedy: 'Change it with `PATCH`, or use the bulk upsert.',
  },
  contact_suppressed: {
    meaning: 'The contact bounced or complained, and so it cannot be subscribed again by the API.',
    remedy: 'An operator can lift the suppression, with a reason.',
  },
  invalid_state: {
    meaning:
      'The broadcast is in a state that forbids this, or something that it needs is missing: the words name the state and all that is missing. Or a message was to be cancelled or moved that does not wait for its time any more.',
    remedy: 'Do what the words name, then repeat the call. A message whose time has come goes as it is.',
  },
  payload_too_large: {
    meaning: `The body is larger than ${MAX_BODY_BYTES / 1024 ** 2} MiB (an upload: ${MAX_UPLOAD_BYTES / 1024 ** 2} MiB), or an email with its attachments is too large for mail servers, or its JSON holds more than ${MAX_JSON_STRINGS.toLocaleString('en')} strings, arrays and objects, or ${MAX_JSON_VALUES.toLocaleString('en')} values.`,
    remedy: 'Send smaller batches, and files as base64 or as uploads.',
  },
  unsupported_media_type: {
    meaning: 'The body is not `application/json` in UTF-8, or it is compressed.',
    remedy: 'Send `Content-Type: application/json`, uncompressed.',
  },
  from_domain_not_verified: {
    meaning:
      'The domain of `from` is not a verified domain of the team. The message says whether it is pending.',
    remedy: 'Add the domain, publish its DNS records, have it verified.',
  },
  rate_limited: { meaning: 'The team sends faster than its rate.', remedy: again },
  internal_error: {
    meaning: 'A fault of the service. The message holds the id of the request.',
    remedy: 'Repeat the call with the same `idempotency_key`. Should it stay, tell the operator the id.',
  },
  unavailable: {
    meaning:
      'The service could not do it in time: its database is away, or too much is under way, such as large bodies that wait for each other.',
    remedy: again,
  },
}
