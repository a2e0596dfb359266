/** Shows the content of an email: as a preview, text, HTML, headers, or JSON. */

import type { ShownEmail } from '../../../db/messages/emails/show.ts'
import { keysOf } from '../../../db/validation/keys.ts'
import { text } from '../components/cell.ts'
import type { Section } from '../components/section.ts'
import { addressWith, wordParam } from '../server/list.ts'
import type { TeamRequest } from '../server/page.ts'
import { emailPath } from './email-place.ts'

const VIEW_LABELS = {
  preview: 'Preview',
  text: 'Text',
  html: 'HTML',
  headers: 'Headers',
  raw: 'JSON',
} as const
const VIEWS = keysOf(VIEW_LABELS)

/** An email to show. `emptied` is true if its content was deleted. */
type EmailView = {
  email: ShownEmail
  emptied: boolean
  request: TeamRequest<'id'>
  sentText: () => Promise<string>
}

const GONE = 'The content of this email was deleted, by retention or by an erasure request.'

const headersShown = ({ headers }: ShownEmail, emptied: boolean): Section =>
  headers === null
    ? { kind: 'text', paragraphs: [emptied ? GONE : 'It has no custom headers.'] }
    : {
        kind: 'facts',
        facts: Object.entries(headers).map(([label, value]) => ({
          label,
          cell: text(value, { code: true }),
        })),
      }

/** Shows the HTML in a frame with the width of a phone, a tablet, or the page. */
function previewShown(request: TeamRequest): Section {
  const pictures = wordParam(request.query, 'pictures', ['on']) === 'on'
  const width = wordParam(request.query, 'width', ['390', '768'])
  const link = (label: string, changes: Record<string, string | undefined>, current: boolean) => ({
    href: addressWith(request, changes),
    label,
    current,
  })
  return {
    kind: 'frame',
    note: pictures
      ? 'Links don’t open here.'
      : 'Remote images are hidden, because loading them can count as an open.',
    links: [
      link('Phone', { width: '390' }, width === '390'),
      link('Tablet', { width: '768' }, width === '768'),
      link('Full width', { width: undefined }, width === undefined),
    ],
    side: pictures
      ? { href: addressWith(request, { pictures: undefined }), label: 'Hide remote images' }
      : { href: addressWith(request, { pictures: 'on' }), label: 'Show remote images' },
    src: emailPath(request, `preview${pictures ? '-with-pictures' : ''}`),
    width: width && (width === '390' ? 'phone' : 'tablet'),
  }
}

/** Shows the text part. If the email has none, it is generated from the HTML. */
async function textShown({ email, emptied, sentText }: EmailView): Promise<Section> {
  const code = email.body_text === '' && !emptied ? await sentText() : email.body_text
  if (code !== '') return { kind: 'code', code }
  return { kind: 'text', paragraphs: [emptied ? GONE : 'It has no plain-text part.'] }
}

async function viewShown(looked: EmailView, view: (typeof VIEWS)[number]): Promise<Section> {
  const { email, emptied, request } = looked
  if (view === 'preview') return previewShown(request)
  if (view === 'headers') return headersShown(email, emptied)
  if (view === 'html') return { kind: 'code', code: email.html }
  if (view === 'text') return textShown(looked)
  const { unsubscribe_token: _, unsubscribe_url: __, events: ___, waiting: ____, ...rest } = email
  return { kind: 'code', code: JSON.stringify(rest, null, 2) }
}

export async function content(looked: EmailView): Promise<Section[]> {
  const { email, emptied, request } = looked
  if (email.internal) {
    const words = 'This email contains a sign-in link, so only its recipient can see it.'
    return [{ kind: 'text', title: 'Content', paragraphs: [words] }]
  }
  if (emptied && email.html === '') return [{ kind: 'text', title: 'Content', paragraphs: [GONE] }]
  const view = wordParam(request.query, 'view', VIEWS) ?? 'preview'
  const links = VIEWS.map((one) => ({
    href: addressWith(request, { view: one === 'preview' ? undefined : one }),
    label: VIEW_LABELS[one],
    current: one === view,
  }))
  const note = emptied ? `${GONE} This is its template without the values.` : undefined
  return [{ kind: 'tabs', title: 'Content', note, links }, await viewShown(looked, view)]
}
