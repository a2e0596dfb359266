/** Builds distinct, complete and plain emails for provider tests. A test states only what matters to it. */
import { randomUUID } from 'node:crypto'
import type { OutgoingEmail } from '../../workers/providers/provider.ts'

export function outgoingEmail(changes: Partial<OutgoingEmail> = {}): OutgoingEmail {
  const email_id = randomUUID()
  const to = changes.to ?? ['ana@example.com']
  return {
    test: false,
    deferrals: 0,
    team_id: randomUUID(),
    email_id,
    message_id: `${email_id}@demo.test`,
    from: 'Demo <hello@demo.test>',
    to,
    cc: [],
    recipients: to,
    return_path: 'bounce@demo.test',
    shared_return_path: null,
    reference: `b-${'0'.repeat(62)}`,
    subject: 'Hello',
    html: '<p>Hello</p>',
    text: '',
    reply_to: '',
    headers: null,
    list_unsubscribe: null,
    date: new Date('2026-03-01T12:00:00Z'),
    dkim: null,
    ed25519: null,
    files: [],
    is_broadcast: false,
    ...changes,
  }
}
