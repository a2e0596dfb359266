/**
 * The guides of the documentation page. Each is a Markdown file in guides/. Names such as `{{body_mib}}` are replaced
 * by the limits in the code. HTML in a file is shown as text.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Marked } from 'marked'
import { escapeHtml } from '../../db/validation/slots.ts'
import { BODY_BUDGET } from '../http/body-budget.ts'
import { MAX_JSON_STRINGS, MAX_JSON_VALUES } from '../http/input.ts'
import { MAX_BODY_BYTES, MAX_UPLOAD_BYTES } from '../http/read-body.ts'
import { BATCH_SAMPLES, type Sample, SIZED_BATCH_SAMPLES } from './samples.ts'
import { TEST_ADDRESSES, TEST_NUMBERS } from './test-recipients.ts'

/** `markdown` is the text below the title. Samples are shown at the end. */
export type Guide = { id: string; title: string; markdown: string; samples: readonly Sample[] }

const MIB = 1024 ** 2

/** Verifies a webhook with Python's standard library. */
export const PYTHON = `import base64, hashlib, hmac, time

def verify(secret, headers, body):
    key = base64.b64decode(secret.removeprefix("whsec_"))
    id, at = headers["webhook-id"], headers["webhook-timestamp"]
    if abs(time.time() - int(at)) > 300:
        raise ValueError("too old")
    mac = hmac.new(key, f"{id}.{at}.".encode() + body, hashlib.sha256)
    ours = "v1," + base64.b64encode(mac.digest()).decode()
    if not any(hmac.compare_digest(ours, each) for each in headers["webhook-signature"].split()):
        raise ValueError("invalid signature")
`

const testRecipients = [
  '| To | Result |',
  '|---|---|',
  ...TEST_ADDRESSES.map(
    ({ to, becomes, others }) => `| \`${to}@\`${others ? ', any other address' : ''} | ${becomes} |`,
  ),
  ...TEST_NUMBERS.map(
    ({ to, becomes, others }) =>
      `| a number that ends in \`${to}\`${others ? ', any other number' : ''} | ${becomes} |`,
  ),
].join('\n')

/** What the names in the files stand for. Other names, such as `{{name}}`, stay as they are. */
const VALUES: Readonly<Record<string, string | number>> = {
  body_mib: MAX_BODY_BYTES / MIB,
  upload_mib: MAX_UPLOAD_BYTES / MIB,
  max_strings: MAX_JSON_STRINGS.toLocaleString('en'),
  max_values: MAX_JSON_VALUES.toLocaleString('en'),
  team_mib: BODY_BUDGET.ofOne / MIB,
  unauthenticated_mib: BODY_BUDGET.unproved / MIB,
  total_mib: BODY_BUDGET.inAll / MIB,
  wait_s: BODY_BUDGET.patience / 1_000,
  test_recipients: testRecipients,
  python: PYTHON.trimEnd(),
}

function readGuide(id: string, samples: readonly Sample[] = []): Guide {
  const file = readFileSync(join(import.meta.dirname, 'guides', `${id}.md`), 'utf8')
  const text = file.replace(/\{\{(\w+)\}\}/g, (name, key: string) => String(VALUES[key] ?? name))
  const [title = '', ...rest] = text.split('\n')
  return { id, title: title.replace('# ', ''), markdown: rest.join('\n'), samples }
}

export const GUIDES: readonly Guide[] = [
  readGuide('first-email'),
  readGuide('retries'),
  readGuide('batches', BATCH_SAMPLES),
  readGuide('batch-sizes', SIZED_BATCH_SAMPLES),
  readGuide('when'),
  readGuide('copies'),
  readGuide('attachments'),
  readGuide('templates'),
  readGuide('broadcasts'),
  readGuide('one-time-passwords'),
  readGuide('headers'),
  readGuide('provider-webhooks'),
  readGuide('limits'),
  readGuide('test-teams'),
  readGuide('what-became-of-it'),
  readGuide('webhooks'),
  readGuide('errors'),
  readGuide('from-resend'),
]

const markdown = new Marked({
  renderer: {
    html: ({ text }) => escapeHtml(text),
    code: ({ text }) => `<pre tabindex="0"><code>${escapeHtml(text)}</code></pre>\n`,
    heading({ tokens, depth }) {
      return `<h${depth + 2}>${this.parser.parseInline(tokens)}</h${depth + 2}>\n`
    },
    table({ header, rows }) {
      const line = (tag: string, cells: typeof header) =>
        `<tr>${cells.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join('')}</tr>`
      const body = rows.map((row) => line('td', row)).join('')
      return `<div class="wide" tabindex="0"><table><thead>${line('th', header)}</thead><tbody>${body}</tbody></table></div>\n`
    },
  },
})

/** Writes a guide as HTML. */
export const guideHtml = ({ markdown: text }: Guide): string => markdown.parse(text, { async: false })
