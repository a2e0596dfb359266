/**
 * The guides. Each is a Markdown file in guides/, shown on the documentation page and served on its own. Names such as
 * `{{body_mib}}` are replaced by the limits in the code. HTML in a file is shown as text.
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
import { webhookExamples } from './webhooks.ts'

type Example = { type: string; body: unknown }

/** `markdown` is the text below the title. Samples and examples are shown at the end. */
export type Guide = {
  id: string
  title: string
  markdown: string
  samples: readonly Sample[]
  examples: readonly Example[]
}

const MIB = 1024 ** 2

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

/** The values of the names in the files. Other names, such as `{{name}}`, don't change. */
const VALUES: Readonly<Record<string, string | number>> = {
  body_mib: MAX_BODY_BYTES / MIB,
  upload_mib: MAX_UPLOAD_BYTES / MIB,
  max_strings: MAX_JSON_STRINGS.toLocaleString('en'),
  max_values: MAX_JSON_VALUES.toLocaleString('en'),
  team_mib: BODY_BUDGET.perOwner / MIB,
  unauthenticated_mib: BODY_BUDGET.unauthenticated / MIB,
  total_mib: BODY_BUDGET.total / MIB,
  wait_s: BODY_BUDGET.patience / 1_000,
  test_recipients: testRecipients,
}

type GuideParts = { samples?: readonly Sample[]; examples?: readonly Example[] }

function readGuide(id: string, { samples = [], examples = [] }: GuideParts = {}): Guide {
  const file = readFileSync(join(import.meta.dirname, 'guides', `${id}.md`), 'utf8')
  const text = file.replace(/\{\{(\w+)\}\}/g, (name, key: string) => String(VALUES[key] ?? name))
  const [title = '', ...rest] = text.split('\n')
  return { id, title: title.replace('# ', ''), markdown: rest.join('\n'), samples, examples }
}

export const GUIDES: readonly Guide[] = [
  readGuide('first-email'),
  readGuide('not-supported'),
  readGuide('retries'),
  readGuide('batches', { samples: BATCH_SAMPLES }),
  readGuide('batch-sizes', { samples: SIZED_BATCH_SAMPLES }),
  readGuide('scheduling'),
  readGuide('copies'),
  readGuide('attachments'),
  readGuide('templates'),
  readGuide('broadcasts'),
  readGuide('one-time-passwords'),
  readGuide('headers'),
  readGuide('provider-webhooks'),
  readGuide('limits'),
  readGuide('test-teams'),
  readGuide('delivery-status'),
  readGuide('webhooks', { examples: webhookExamples() }),
  readGuide('verify-webhooks'),
  readGuide('errors'),
  readGuide('from-resend'),
  readGuide('from-sendgrid'),
  readGuide('from-postmark'),
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

/** Writes the text of a guide as HTML. */
export const guideHtml = (text: string): string => markdown.parse(text, { async: false })
