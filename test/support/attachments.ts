/** Set-up for tests of attachments: files, sends with attachments, and stored rows. */
import { createHash } from 'node:crypto'
import { sql } from 'slonik'
import type { Test } from 'tap'
import { number } from 'yup'
import { row } from '../../db/postgres/rows.ts'
import { anEmail, makeTeam, startService, type TestTeam } from './service.ts'

export const base64 = (bytes: string | Uint8Array): string => Buffer.from(bytes).toString('base64')
export const sha = (bytes: string | Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
export const aFile = (changes: Record<string, unknown> = {}) => ({
  filename: 'invoice.pdf',
  content: base64('%PDF-1.7'),
  ...changes,
})

/** Creates a team that sends attachments. `stored` counts a team's stored files from the rows. */
export async function beginAttachments(t: Test) {
  const service = await startService(t)
  const team = await makeTeam(service)
  const send = (attachments: unknown, changes: Record<string, unknown> = {}, key = team.key) =>
    service.call('POST', '/v1/emails', { key, body: anEmail({ attachments, ...changes }) })
  const batch = (emails: unknown[], key = team.key) =>
    service.call('POST', '/v1/emails/batch', { key, body: { emails } })

  const stored = (of: Pick<TestTeam, 'id'>) =>
    service.database.one(sql.type(
      row({ files: number(), bytes: number(), chunks: number(), used: number() }),
    )`
      select count(*) as files, coalesce(sum(size), 0) as bytes,
        (select coalesce(sum(length(bytes)), 0) from file_chunks where team_id = ${of.id}) as chunks,
        (select storage_used from allowances where team_id = ${of.id}) as used
      from files where team_id = ${of.id}`)
  return { service, team, send, batch, stored }
}
