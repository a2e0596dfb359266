/** The guides of the documentation page, in HTML: what a newcomer does first, and what to know before going live. */

import { BODY_BUDGET } from '../http/body-budget.ts'
import { MAX_JSON_STRINGS, MAX_JSON_VALUES } from '../http/input.ts'
import { MAX_BODY_BYTES, MAX_UPLOAD_BYTES } from '../http/read-body.ts'
import { code, type Guide, refusal, table } from './prose.ts'
import { BATCH_SAMPLES, SIZED_BATCH_SAMPLES } from './samples.ts'
import { DAY_LATER, DOMAIN, HOME, LATER } from './shown.ts'
import { TEST_ADDRESSES, TEST_NUMBERS } from './test-recipients.ts'
import { WEBHOOKS_GUIDE } from './webhooks-guide.ts'

const MIB = 1024 ** 2

export const GUIDES: readonly Guide[] = [
  {
    id: 'first-email',
    title: 'Your first email',
    html: `<p>You need an API key with the scope <code>emails:send</code> and a verified sending domain. <code>npm start</code>
makes both for trying things out and prints the key. Put your key in place of <code>hg_…</code>.</p>
${code(`
export HELIOGRAPH_URL=${HOME}
export HELIOGRAPH_KEY=hg_…
`)}
<p>Every call on this page needs these two variables. The calls send from <code>${DOMAIN}</code>. If your verified domain
is another one, put it there instead. This call sends an email:</p>
${code(`
curl "$HELIOGRAPH_URL/v1/emails" \\
  -H "Authorization: Bearer $HELIOGRAPH_KEY" \\
  -H 'Content-Type: application/json' \\
  -d '{"from":"Acme &lt;hello@${DOMAIN}&gt;","to":["delivered@example.com"],"subject":"Hello","html":"&lt;p&gt;Hello&lt;/p&gt;"}'
`)}
<p>A <code>201</code> means that the email is stored and will be delivered, whatever happens to any process. What became of
it is in the <a href="/dashboard">dashboard</a>. Every call below is shown in the language that you choose beside it.</p>`,
  },
  {
    id: 'retries',
    title: 'Idempotency and retries',
    html: `<p>Give every send an <code>idempotency_key</code> of your own, such as <code>order-1001-shipped</code>: in the body, or for
a single send in the <code>Idempotency-Key</code> header. The first call stores the email and answers <code>201</code>. Every
repetition answers <code>200</code> with the same email, sends nothing again and costs nothing. So after a timeout, a lost
connection, a <a href="#unavailable"><code>503</code></a> or a <a href="#rate_limited"><code>429</code></a> just repeat the
call with the same key, after <code>Retry-After</code> seconds where the answer has it.</p>
<p>Keys are per team and per channel, and are kept as long as the email. Other refusals (<code>4xx</code>) will be the same
next time: change the call instead.</p>`,
  },
  {
    id: 'batches',
    title: 'Batches',
    html: `<p>One call takes up to 100 emails, 100 WhatsApp messages or 1,000 contacts, and is many times cheaper than single
ones. It answers <code>200</code> with an item for each of yours, in order: an <code>id</code>, or an <code>error</code> with
the same codes as a single call. An item that fails leaves the others alone.</p>
<p>To send a batch with retries, give each item a key of its own, then send again only the items that came back as
<a href="#rate_limited"><code>rate_limited</code></a>, and the whole call when there was no answer.</p>
<p>A batch that would not fit the allowance is refused as a whole with <a href="#quota_exceeded"><code>402</code></a>: then
nothing of it is sent.</p>`,
    samples: BATCH_SAMPLES,
  },
  {
    id: 'batch-sizes',
    title: 'How large a batch may be',
    html: `<p>Each new email of a batch takes a place of the send rate, as a single send does: the 100 of a call are its bound, not
what a team may send at once. A team may send for 5 seconds of its rate at once, and what is beyond comes back
as <a href="#rate_limited"><code>rate_limited</code></a>, item by item. Repeats of a stored
<code>idempotency_key</code> take no place.</p>
${table(
  ['Rate of the plan', 'At once, after a rest', '1,000 emails in batches of that size'],
  [
    ['1 a second', '5', 'one call every 5 seconds, 17 minutes'],
    ['10 a second', '50', 'one call every 5 seconds, 95 seconds'],
    ['20 a second and more', '100, the bound of a call', 'one call every 5 seconds, or sooner'],
  ],
)}
<p>So size a batch by the <code>r</code> of <code>"sends"</code> in the last answer’s <code>RateLimit</code>, and before the
first by the <code>q</code> in <code>RateLimit-Policy</code> of any send. Where <code>r</code> is too few, wait: after
<code>t</code> seconds there are <code>q</code> again. The <code>r</code> of <code>"emails"</code> bounds it, too: a batch of
more new emails than are left of the period is refused as a whole.</p>`,
    samples: SIZED_BATCH_SAMPLES,
  },
  {
    id: 'when',
    title: 'Later, and not at all',
    html: `<p>With a <code>scheduled_at</code> an email or a WhatsApp message waits for its time: RFC 3339 with a zone, at most 90
days ahead. Up to five minutes in the past means now, so that a slow clock loses nothing. Items of a batch may each have
their own.</p>
${code(`
curl "$HELIOGRAPH_URL/v1/emails" \\
  -H "Authorization: Bearer $HELIOGRAPH_KEY" \\
  -H 'Content-Type: application/json' \\
  -d '{"from":"Acme &lt;hello@${DOMAIN}&gt;","to":["ana@example.org"],"subject":"See you at nine",
       "html":"&lt;p&gt;See you.&lt;/p&gt;","scheduled_at":"${LATER}"}'
`)}
<p>Until then it can be moved and cancelled. Set the variable <code>ID</code> to its id. Once its time has come, both are refused with
<a href="#invalid_state"><code>409</code></a>: what you cancelled is never sent. A cancelled message frees its place in the
allowance and its idempotency key.</p>
${code(`
curl -X PATCH "$HELIOGRAPH_URL/v1/emails/$ID" -H "Authorization: Bearer $HELIOGRAPH_KEY" \\
  -H 'Content-Type: application/json' -d '{"scheduled_at":"${DAY_LATER}"}'
curl -X POST "$HELIOGRAPH_URL/v1/emails/$ID/cancel" -H "Authorization: Bearer $HELIOGRAPH_KEY"
`)}
<p><code>expires_in</code> says for how many seconds a message is worth sending, 60 to 86,400, from its acceptance or from
its time: for sign-in codes and password resets. Later it is not handed to a provider any more, and
<code>email.failed</code> or <code>whatsapp.failed</code> says <code>expired: …</code>. What a provider has taken by then
cannot be called back.</p>
<p>It counts in the allowance from its acceptance on, with the template as it is then. A broadcast has a
<code>send_at</code> instead.</p>`,
  },
  {
    id: 'copies',
    title: 'Copies: cc and bcc',
    html: `<p>An email has <code>cc</code> and <code>bcc</code> besides <code>to</code>: arrays of addresses, each with a name if
you like, at most 50 of all three.</p>
${code(`
curl "$HELIOGRAPH_URL/v1/emails" \\
  -H "Authorization: Bearer $HELIOGRAPH_KEY" \\
  -H 'Content-Type: application/json' \\
  -d '{"from":"Acme &lt;hello@${DOMAIN}&gt;","to":["ana@example.org"],"cc":["Ben &lt;ben@example.org&gt;"],
       "bcc":["archive@example.com"],"subject":"Your contract","html":"&lt;p&gt;Please sign.&lt;/p&gt;"}'
`)}
<p>All of them get the same message: it names <code>to</code> and <code>cc</code> in its headers, and nobody of
<code>bcc</code> anywhere. An address that is given twice gets one copy. It is one email: one answer, with
<code>cc_emails</code> and <code>bcc_emails</code>, one place in the quota, one status (the highest that any of them has
reached); webhooks say of each <code>recipient</code> what became of it. A server that puts some of them off is asked for
these again, not for the others. Unsubscribe links are for emails to one person: with copies to others there is none.</p>`,
  },
  {
    id: 'attachments',
    title: 'Attachments',
    html: `<p>An email carries up to 20 files, alone or in a batch: their bytes in base64 as <code>content</code>, with a
<code>filename</code>. A picture with a <code>content_id</code> stands where the html has it, as
<code>&lt;img src="cid:logo"&gt;</code>. With the <code>resend</code> package:</p>
${code(`
import { readFile } from 'node:fs/promises'
import { Resend } from 'resend' // with RESEND_BASE_URL=${HOME}/v1 and RESEND_API_KEY=hg_…

await new Resend().emails.send({
  from: 'Acme &lt;hello@${DOMAIN}&gt;',
  to: ['ana@example.org'],
  subject: 'Your invoice',
  html: '&lt;img src="cid:logo"&gt;&lt;p&gt;Thank you.&lt;/p&gt;',
  attachments: [
    { filename: 'invoice.pdf', content: await readFile('invoice.pdf') },
    { filename: 'logo.png', content: await readFile('logo.png'), contentId: 'logo' },
  ],
})
`)}
<p>Upload a file by itself when many emails carry it, or when it is large: for 7 days emails can refer to its
<code>id</code>.</p>
${code(`
echo 'Our terms.' > terms.txt
curl "$HELIOGRAPH_URL/v1/attachments?filename=terms.txt" \\
  -H "Authorization: Bearer $HELIOGRAPH_KEY" \\
  -H 'Content-Type: text/plain' --data-binary @terms.txt
# then, in each email: "attachments": [{"attachment_id": "…"}]
`)}
<p>A JSON body may have ${MAX_BODY_BYTES / MIB} MiB, a file that is uploaded ${MAX_UPLOAD_BYTES / MIB} MiB, and so may a message as encoded, which adds 37 %. Equal
bytes are stored once for a team and count once towards its storage. They are deleted three days after their last use
(an operator's setting), never while an email waits; names and sizes stay.</p>`,
  },
  {
    id: 'templates',
    title: 'Templates',
    html: `<p>Email templates have slots such as <code>{{name}}</code> (letters, digits, <code>_</code>, <code>-</code>, <code>.</code>).
<code>variables</code> fills them, HTML-escaped; every slot has to be filled, surplus variables are ignored. A template wins
over <code>html</code>. A changed template is a new version: emails that were sent keep theirs. The slot
<code>{{unsubscribe_url}}</code> is filled for an email to one stored contact.
A subject has no slots: braces in it are sent as they are.</p>
<p>WhatsApp templates are those that the provider approved. Their slots are named by place: <code>body:1</code>,
<code>header:1</code>, <code>url:1</code>. Every declared slot is required, and no other is taken. A template with named
parameters, or with media, is <a href="#template_unsupported"><code>template_unsupported</code></a>.</p>`,
  },
  {
    id: 'broadcasts',
    title: 'Broadcasts',
    html: `<p>A broadcast sends one template to every subscribed contact of some topics. Create a draft, send a test, start it; then
pause, resume or cancel it. The template needs the slot <code>{{unsubscribe_url}}</code>, the sender a verified domain, the
service an <code>https</code> address, and the quota room for the whole audience: a start that is refused
(<code>409 invalid_state</code>) names everything that is missing.</p>
<ul>
<li>A contact gets at most one email of a broadcast, whatever fails on the way. Who unsubscribes before it is handed over
gets none.</li>
<li>Slots are filled by the contact’s properties and <code>email</code>, then by the broadcast’s <code>variables</code>. A contact
with an empty slot is skipped.</li>
<li>Broadcasts take from the quota, not from the send rate, and single emails go first.</li>
<li>Its state and its stats are those of the whole broadcast; lists of people are in the dashboard.</li>
</ul>`,
  },
  {
    id: 'one-time-passwords',
    title: 'One-time passwords by WhatsApp',
    html: `<p>Have a template of the category <em>authentication</em> approved, with a button that copies the code. The provider
gives that button a dynamic URL, so the template declares two slots, and the code goes into both: <code>body:1</code> is
what the recipient reads, <code>url:1</code> what the button copies.</p>
${code(`
curl "$HELIOGRAPH_URL/v1/whatsapp/messages" \\
  -H "Authorization: Bearer $HELIOGRAPH_KEY" \\
  -H 'Content-Type: application/json' \\
  -d '{"template_id":"'"$WHATSAPP_TEMPLATE_ID"'","to":["+15555550101"],"parameters":{"body:1":"493017","url:1":"493017"},"idempotency_key":"login-7f3a"}'
`)}
<p>The provider takes codes of at most 15 characters. Give each attempt to sign in an <code>idempotency_key</code> of its own,
so that a repeated call does not send the code twice, and let the code expire in your own program.</p>`,
  },
  {
    id: 'headers',
    title: 'Headers of answers',
    html: table(
      ['Header', 'On', 'What it says'],
      [
        [
          '<code>X-Request-Id</code>',
          'every answer',
          'The id of the request: yours, if you sent a sane one.',
        ],
        [
          '<code>RateLimit-Policy</code>',
          'sends of email that counted, <a href="#quota_exceeded"><code>402</code></a>, <a href="#rate_limited"><code>429</code></a>',
          'The send rate: <code>"sends";q=50;w=5</code> is 50 sends in 5 seconds. Where the emails of the period are limited, those: <code>"emails";q=50000;w=2678400</code>.',
        ],
        [
          '<code>RateLimit</code>',
          'the same',
          'Where you stand: <code>"sends";r=49;t=1</code> is 49 left, all of them back in 1 second; <code>"emails";r=12345;t=861200</code> that the next period begins in 861,200 seconds.',
        ],
        [
          '<code>Retry-After</code>',
          '<a href="#rate_limited"><code>429</code></a>, <a href="#unavailable"><code>503</code></a>',
          'Seconds to wait before the same call again.',
        ],
      ],
    ),
  },
  {
    id: 'provider-webhooks',
    title: 'Webhooks of providers',
    html: `<p>Deliveries, bounces and complaints come from your mail server, a hosted relay, Amazon SES or the WhatsApp
Cloud API to <code>POST /hooks/smtp</code>, <code>/hooks/relay</code>, <code>/hooks/ses</code> and <code>/hooks/whatsapp</code>.
Each is proved genuine before it is believed: by a bearer token, by the relay’s signature or password, by the signature of
SNS, by the HMAC of your app secret. They move the status of messages,
and set contacts to <code>bounced</code> or <code>complained</code>. The operator sets them up once; your code has nothing to do.</p>`,
  },
  {
    id: 'limits',
    title: 'Limits and quotas',
    html: `${table(
      ['Limit', 'Value', 'Past it'],
      [
        ['Emails of a period', 'by plan', refusal('quota_exceeded')],
        ['Sends per second', 'by plan; bursts of 5 times that', refusal('rate_limited')],
        ['Stored contacts', 'by plan', refusal('quota_exceeded')],
        ['Items of a batch', '100 emails, 100 messages, 1,000 contacts', refusal('batch_too_large')],
        ['Recipients', '50 an email with its copies, 50 a WhatsApp message', refusal('bad_request')],
        ['html and text', '1 MiB each', refusal('bad_request')],
        ['Variables', '10,000', refusal('bad_request')],
        [
          'A body',
          `${MAX_BODY_BYTES / MIB} MiB; ${MAX_JSON_STRINGS.toLocaleString('en')} strings (keys too), arrays and objects; ${MAX_JSON_VALUES.toLocaleString('en')} values`,
          refusal('payload_too_large'),
        ],
        [
          'Bodies at once, in a process',
          `${BODY_BUDGET.ofOne / MIB} MiB of one team, ${BODY_BUDGET.unproved / MIB} MiB of all that came without a credential, ${BODY_BUDGET.inAll / MIB} MiB of all; ${BODY_BUDGET.patience / 1_000} s of waiting for room`,
          refusal('unavailable'),
        ],
      ],
    )}
<p>Quotas are exact and per team: never one email over. Deleting an email frees its place. Free plans count by calendar
month in UTC, paid ones by the period of the subscription.</p>
<p>What JSON holds is counted before it is parsed, as it takes up to fifty times its length in memory. A file as base64 is one
string; as a Buffer each of its bytes is a value. A large body that finds no room waits unread: after <code>503</code> repeat
the call, and send fewer of them at once. A process with less than 512 MB of memory takes smaller bodies, and its
<code>413</code> says how large they may be. Upload large files as attachments.</p>`,
  },
  {
    id: 'test-teams',
    title: 'Test teams',
    html: `<p>Of a test team nothing is delivered: ask the operator for one, for staging and for your app’s own tests. Every
call, refusal, quota and webhook is that of any team; only what is sent ends in a simulator, which behaves by the recipient.
Who is named here may stand at any domain, with a <code>+suffix</code> too.</p>
${table(
  ['To', 'What becomes of it'],
  [
    ...TEST_ADDRESSES.map(({ to, becomes, others }) => [
      `<code>${to}@</code>${others ? ', anybody else' : ''}`,
      becomes,
    ]),
    ...TEST_NUMBERS.map(({ to, becomes, others }) => [
      `a number that ends in <code>${to}</code>${others ? ', any other' : ''}`,
      becomes,
    ]),
  ],
)}
<p>What was sent is read in the dashboard, on the email’s page.</p>`,
  },
  {
    id: 'what-became-of-it',
    title: 'How do I learn what became of an email?',
    html: `<p>The API answers that an email is stored, and nothing afterwards: there is no call for its status. You learn it in
two other places.</p>
<p><b>To your program</b>, by <a href="#webhooks">webhooks</a>: the dashboard’s page Webhooks sends each event
(<code>email.delivered</code>, <code>email.bounced</code>, …) to a URL of yours, signed. <code>data.email_id</code> is the id of
the answer to the send, and <code>data.rank</code> grows, so that events in any order end in the same status: keep the highest. If the message is requeued,
<code>data.requeued_at</code> changes and <code>data.rank</code> starts again.</p>
<p><b>To people</b>, in the <a href="/dashboard">dashboard</a>: find the email by its recipient, its subject or any id. Its page says in
the server’s words what happened, to whom, and why one waits.</p>
<p>With plain SMTP, servers report bounces but no deliveries: the last status is <code>sent</code> then. A relay that reports
(Mailgun, SendGrid, Postmark, Brevo) or Amazon SES tells of deliveries, opens and clicks, too.</p>`,
  },
  WEBHOOKS_GUIDE,
  {
    id: 'errors',
    title: 'Errors',
    html: `<p>Every failure is <code>{"error": {"code": …, "message": …}}</code> and nothing else. The code is for programs and is
explained <a href="#codes">below</a>; the message is for people, and names the field and what it must be. Every answer has
an <code>X-Request-Id</code>, your own if you sent one: tell it to the operator.</p>`,
  },
  {
    id: 'from-resend',
    title: 'Going from Resend',
    html: `<p>The official <code>resend</code> package works for <code>emails.send</code>, <code>emails.update</code>,
<code>emails.cancel</code>, <code>contacts.create</code> and <code>contacts.get</code> when it is pointed here:</p>
${code('RESEND_BASE_URL="$HELIOGRAPH_URL/v1" RESEND_API_KEY="$HELIOGRAPH_KEY" node your-program.js')}
<p>Its <code>error</code> holds our envelope, so that <code>error.message</code> is undefined. Two lines put that right:</p>
${code(`const { data, error: refused } = await resend.emails.send(email)
const error = refused?.error ?? refused // { code, message }`)}
${table(
  ['What', 'Resend', 'Here'],
  [
    ['<code>to</code>', 'a string or an array', 'an array'],
    [
      'Content',
      '<code>html</code>, <code>text</code> or <code>react</code>',
      '<code>html</code> or <code>template_id</code>; <code>text</code> beside it',
    ],
    ['<code>replyTo</code>', 'a string or an array', 'a string with one address'],
    ['<code>tags</code>', 'objects', 'strings'],
    ['<code>cc</code>, <code>bcc</code>', 'a string or an array', 'an array'],
    ['<code>scheduledAt</code>', 'a time, or words such as “in 1 hour”', 'a time with its zone'],
    ['Idempotency', 'the header, for 24 hours', 'the header or the field, as long as the email'],
    ['Batch', 'an array', '<code>{"emails": […]}</code>, an outcome for each item'],
    ['Answer of a send', 'the id', 'the whole email, its id in it'],
    ['Errors', '<code>{name, message, statusCode}</code>', '<code>{error: {code, message}}</code>'],
    ['Contacts', 'in audiences', 'one per address and team, with topics and properties'],
    [
      '<code>firstName</code>, <code>lastName</code>',
      'fields of a contact',
      'ignored, as unknown fields are: put them into <code>properties</code>',
    ],
    [
      '<code>contacts.remove</code>',
      'answers with a body',
      '<code>204</code> without one: the package says <code>application_error</code>, and the contact is deleted',
    ],
    ['Reading, webhooks to you', 'by API', 'in the dashboard'],
  ],
)}`,
  },
]
