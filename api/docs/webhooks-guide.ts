/** The guide to webhooks: how to take and verify them, and an example of each type. */
import { escapeHtml } from '../../db/validation/slots.ts'
import { code, type Guide } from './prose.ts'
import { webhookExamples } from './webhooks.ts'

/** How a server verifies a webhook with nothing but Python's own library. */
export const PYTHON = `import base64, hashlib, hmac, time

def verify(secret, headers, body):
    key = base64.b64decode(secret.removeprefix("whsec_"))
    id, at = headers["webhook-id"], headers["webhook-timestamp"]
    if abs(time.time() - int(at)) > 300:
        raise ValueError("too old")
    mac = hmac.new(key, f"{id}.{at}.".encode() + body, hashlib.sha256)
    ours = "v1," + base64.b64encode(mac.digest()).decode()
    if not any(hmac.compare_digest(ours, each) for each in headers["webhook-signature"].split()):
        raise ValueError("not ours")
`

const all = (parts: readonly string[]): string => parts.join('\n')

const example = ({ type, body }: { type: string; body: unknown }): string =>
  `<details><summary><code>${type}</code></summary>${code(escapeHtml(JSON.stringify(body, null, 2)))}</details>`

export const WEBHOOKS_GUIDE: Guide = {
  id: 'webhooks',
  title: 'Webhooks',
  html: `<p>Your own server learns what becomes of emails, WhatsApp messages, contacts, broadcasts and domains, as it happens, in the form of
<a href="https://www.standardwebhooks.com">Standard Webhooks</a>. Add it in the <a href="/dashboard">dashboard</a> under
Webhooks, and copy its secret: it is shown once. Each webhook is a <code>POST</code> of JSON:</p>
${code(`
webhook-id: 01994f0e-7c1a-7d3e-9b52-1f6c3c1a9e10
webhook-timestamp: 1795350896
webhook-signature: v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=

{"type": "email.bounced",
 "timestamp": "2026-11-22T14:34:56.000Z",
 "data": {"email_id": "01994f0e-…", "broadcast_id": null, "from": "Acme &lt;hello@example.com&gt;", "to": ["ana@example.org"],
          "recipient": "ana@example.org", "subject": "Hello", "tags": [], "template_id": null,
          "idempotency_key": "order-1001", "requeued_at": null, "rank": 5, "detail": "550 5.1.1 no such user"}}
`)}
<p>Check the signature over the bytes as they came, before parsing them. In Node.js, with the package
<code>standardwebhooks</code>:</p>
${code(`
import { Webhook } from 'standardwebhooks'
const event = new Webhook(secret).verify(body, headers)  // throws when it is not ours
`)}
<p>In Python, with nothing but its own library:</p>
${code(escapeHtml(PYTHON))}
<p>Answer <code>2xx</code> within 15 seconds and work afterwards. Anything else is tried again, nine times over three days,
with the same bytes and the same <code>webhook-id</code>: remember ids to drop repetitions. Webhooks may come in any
order. Of those about one message with the same <code>requeued_at</code>, keep the highest <code>rank</code>. A later
<code>requeued_at</code> wins: the message was sent again. <code>Retry-After</code> with <code>429</code> or
<code>503</code> makes us wait; <code>410</code> disables the webhook, as do five days of nothing but failures. What happens
in the first seven days that it is disabled is kept: enable it, and send again what failed. While a secret is replaced,
two signatures stand beside each other for 24 hours.</p>
${all(webhookExamples().map(example))}
<p><code>email.failed</code> is an email that was given up, or that has expired (its reason begins with
<code>expired:</code>); <code>email.delivery_delayed</code> comes once for each email.
<code>to</code>, <code>cc</code> and <code>bcc</code> are the lists of the send, and <code>recipient</code> says whom of
them it is about. <code>broadcast_id</code> says which broadcast an email is of. <code>contact.topics_left</code> is the unsubscribe that
comes most often: somebody left topics by the link of an email, or by <code>/v1/marketing/unsubscribe</code>; take them off
in your own list too, so that no import puts them back. <code>domain.failing</code> comes once when the DKIM record of a
verified domain was missing on two nights: mail goes on, but may land in spam until it is published again.
<code>team.reputation</code> says that too many emails of the last 24 hours bounced or were reported as spam. It comes once
a day as a warning, and each time that broadcasts and batches of the team are paused for it.</p>`,
}
