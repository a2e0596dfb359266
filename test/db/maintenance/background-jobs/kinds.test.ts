/** Stored background jobs. The forms of version 0.1.0 are read, and unknown forms are left to newer versions. */
import type { OpenBackgroundJob } from '../../../../db/maintenance/background-jobs/background-jobs.sql.ts'
import { type BackgroundJobKind, KINDS } from '../../../../db/maintenance/background-jobs/kinds.ts'
import t from '../../../support/tap.ts'

const ID = '01980000-0000-7000-8000-000000000000'
const AT = '2026-11-01T00:00:00.000Z'
const matching = { filter: {}, between: { newest: ID, oldest: ID }, most: 2, seen: '1:1:', words: 'all' }
const filter = { status: 'bounced', scheduled: true, from: AT, to: AT, tag: 'a', whose: 'all' }
const picked = { force: false, until: ID, at: AT, words: 'status: failed' }
const place = { at: 10, line: 2, breaks: 1, separator: ',', header: ['email'] }

type Stored = Pick<OpenBackgroundJob, 'given'> & Partial<Pick<OpenBackgroundJob, 'cursor' | 'result'>>

/** Each form that version 0.1.0 stored. */
const STORED: readonly (Stored & { kind: BackgroundJobKind })[] = [
  { kind: 'contact.import', given: { import_id: ID, file_name: 'a.csv' } },
  {
    kind: 'contact.import',
    given: { import_id: ID, file_name: 'a.csv' },
    cursor: { pass: 'check', place: null, records: 0 },
    result: { refused: 1 },
  },
  {
    kind: 'suppression.import',
    given: { import_id: ID, file_name: 'a.csv', words: 'manual: list' },
    cursor: { pass: 'store', place, records: 500 },
  },
  { kind: 'contact.erase', given: { identity: 'ana@example.com', subject: '0f' } },
  ...[
    { through: 'emails', after: ID },
    { through: 'tests' },
    { through: 'files' },
    { through: 'webhooks', after: ID },
    { through: 'reports', after: ID },
  ].map((cursor) => ({
    kind: 'contact.erase' as const,
    given: { identity: 'ana@example.com', subject: '0f' },
    cursor,
    result: { contact: true, emails: 1, waiting_emails_deleted: 0, reports: 0 },
  })),
  { kind: 'email.requeue', given: { ...matching, force: true }, cursor: { taken: 1, before: ID } },
  { kind: 'email.requeue', given: { ...matching, filter, force: false }, cursor: { taken: 0 } },
  { kind: 'email.requeue', given: { ...picked, ids: [ID] }, cursor: { after: ID }, result: { changed: 1 } },
  { kind: 'email.requeue', given: { ...picked, status: 'queued', since: AT } },
  { kind: 'whatsapp.requeue', given: picked, cursor: { after: ID } },
  { kind: 'webhook.requeue', given: { ...picked, ids: [] }, cursor: { after: ID } },
  { kind: 'email.delete', given: { ...matching, force: false }, cursor: { taken: 1, before: ID } },
  {
    kind: 'queue.redrive',
    given: { queue: 'deliver-email', reason: null, seen: '1:1:', most: 5 },
    cursor: {},
  },
  {
    kind: 'queue.redrive',
    given: { queue: 'ingest-report', reason: 'a', seen: '1:1:' },
    result: { redriven: 5 },
  },
  {
    kind: 'webhook.replay',
    given: { endpoint_id: ID, what: 'failed', from: AT, to: AT, type: 'email.sent', seen: '1:1:', most: 1 },
    cursor: { after: ID },
    result: { replayed: 1 },
  },
  { kind: 'webhook.replay', given: { endpoint_id: ID, what: 'waiting', seen: '1:1:' } },
]

const opened = (kind: BackgroundJobKind, { given, cursor = null, result = {} }: Stored) =>
  KINDS[kind].open({
    ...{ id: ID, team_id: ID, kind, done: 0, total: null, fault: null, begun_by: 'cli', begun_at: AT },
    ...{ progressed_at: AT, finished_at: null, given, cursor, result },
  })

t.test('jobs of version 0.1.0 are read', async (t) => {
  for (const { kind, ...stored } of STORED)
    t.type(opened(kind, stored), 'function', `${kind} ${JSON.stringify(stored)}`)
})

t.test('stored jobs of other kinds are read', async (t) => {
  const lifted = { filter: { cause: 'bounce', seen: '1:1:' }, reason: 'x', most: 1, words: 'cause: bounce' }
  t.type(opened('suppression.lift', { given: lifted, cursor: { after: 'a@example.com' } }), 'function')
})

t.test('unknown fields are ignored', async (t) => {
  t.type(opened('email.delete', { given: { ...matching, color: 'red' } }), 'function')
})

t.test('leaves a job in an unknown form to newer versions', async (t) => {
  const { filter: _filter, ...unfiltered } = matching
  const UNKNOWN: readonly (Stored & { kind: BackgroundJobKind })[] = [
    { kind: 'email.delete', given: [matching] },
    { kind: 'email.delete', given: unfiltered },
    { kind: 'email.delete', given: { ...matching, filter: { status: 'unheard' } } },
    { kind: 'email.delete', given: { ...matching, filter: { tag: 'a', campaign: 'x' } } },
    { kind: 'email.delete', given: { ...matching, most: 'all' } },
    ...(['email.requeue', 'whatsapp.requeue', 'webhook.requeue'] as const).map((kind) => ({
      kind,
      given: { ...picked, campaign: 'x' },
    })),
    { kind: 'webhook.replay', given: { endpoint_id: ID, what: 'failed', seen: '1:1:', campaign: 'x' } },
    { kind: 'queue.redrive', given: { queue: 'deliver-email', reason: null, seen: '1:1:', campaign: 'x' } },
    { kind: 'email.requeue', given: { ...picked, ids: [1] } },
    { kind: 'email.requeue', given: { ...picked, ids: ID } },
    {
      kind: 'suppression.lift',
      given: { filter: { cause: 'bounce', list: 'x' }, reason: 'x', most: 1, words: 'cause: bounce' },
    },
    { kind: 'email.delete', given: matching, cursor: { after: ID } },
    { kind: 'email.delete', given: matching, result: { changed: '1' } },
    { kind: 'queue.redrive', given: { queue: 'deliver-pigeon', reason: null, seen: '1:1:' } },
    { kind: 'contact.erase', given: { identity: 'a', subject: '0f' }, cursor: { through: 'logs' } },
    { kind: 'contact.erase', given: { identity: 'a', subject: '0f' }, cursor: { through: 'emails' } },
  ]
  for (const { kind, ...stored } of UNKNOWN)
    t.equal(opened(kind, stored), null, `${kind} ${JSON.stringify(stored)}`)
})
