/** Verbs of `email`: a team's stored emails. */

import { appendFile, writeFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { EMAIL } from '../channels/email.sql.ts'
import { EMAIL_LADDER } from '../channels/email.ts'
import { piecesOf } from '../content/files/read.ts'
import { createVersions } from '../content/templates/versions.ts'
import { type RequestError, requestError } from '../errors.ts'
import { emailsToRequeue, requeueToStore } from '../messages/emails/bulk.ts'
import { removeEmail } from '../messages/emails/remove.ts'
import type { EmailFilter } from '../messages/emails/search.ts'
import { searchEmails } from '../messages/emails/search.ts'
import { showEmail } from '../messages/emails/show.ts'
import type { EmailStatus } from '../messages/emails/status.ts'
import type { ListedEmail } from '../messages/emails/view.ts'
import type { Admin } from './context.ts'
import { atMost, count, only, uuidArgument, words } from './input.ts'
import { answer, type Verbs } from './noun.ts'
import { type RequeueFilter, requeueVerb, textsFor } from './requeue.ts'
import { scheduledVerbs } from './scheduled.ts'
import { TEXTS } from './texts.ts'
import { sinceFlag, type TimeRangeOptions, toRange, untilFlag } from './time-range.ts'

const EVER = new Date(0)

type FilterOptions = TimeRangeOptions &
  Omit<EmailFilter, 'team_id' | 'template_id' | 'broadcast_id' | 'from' | 'to'> & {
    template?: string
    broadcast?: string
  }
type ListOptions = { status?: EmailStatus; scheduled?: boolean; limit: number }
type FindOptions = FilterOptions & { team?: string; limit: number }

/** The filters of emails, except their status and `--since`. */
const filterFlags = (command: Command): Command =>
  untilFlag(command, 'accepted before this time')
    .option('--recipient <address>', 'sent to this address, regardless of case, including cc and bcc')
    .option('--id <id>', 'the email’s ID, idempotency key, X-Request-Id, Message-ID or provider ID')
    .option('--subject <words>', 'subject contains all these words, in any order', words)
    .option('--domain <name>', 'sent from this domain')
    .option('--template <id>', 'created from this template', uuidArgument)
    .option('--broadcast <id>', 'in this broadcast', uuidArgument)
    .option('--tag <tag>', 'with this tag')

const filterOf = ({ recipient, id, subject, status, domain, tag, ...others }: FilterOptions) => ({
  recipient,
  id,
  subject,
  ...toRange(others),
  status,
  domain,
  template_id: others.template,
  broadcast_id: others.broadcast,
  tag,
})

type RequeueOptions = FilterOptions & { force?: boolean }

const requeueFilter = ({ force = false, ...options }: RequeueOptions) =>
  ({ ...filterOf(options), whose: 'all', force }) as const

const openDeps = async (admin: Admin) => ({
  tx: await admin.database(),
  versions: createVersions(),
  secrets: await admin.secrets(),
  now: await admin.now(),
  publicUrl: admin.publicUrl,
})

const unwritable = (file: string, { message }: Error): RequestError =>
  requestError('bad_request', TEXTS.cannotWrite, { file, reason: message })

async function writeAttachment(
  admin: Admin,
  { team, id, n, out }: { team: string; id: string; n: number; out: string },
) {
  const { attachments = [] } = await showEmail(await openDeps(admin), team, id)
  const file = attachments[n]
  if (!file) throw requestError('not_found', TEXTS.noAttachment, { n })
  const { filename, content_type, size, sha256 } = file
  const pieces = piecesOf(await admin.database(), { team_id: team, sha256 })
  // Before the file is created, because the attachment may have been deleted.
  const first = await pieces.next()
  const written = async (write: Promise<void>) =>
    write.catch((error) => Promise.reject(unwritable(out, error)))
  await written(writeFile(out, first.value ?? ''))
  for await (const piece of pieces) await written(appendFile(out, piece))
  return { filename, content_type, size, sha256 }
}

/** Searches in parts, each far below the statement timeout. */
async function find(admin: Admin, filter: EmailFilter, limit: number): Promise<readonly ListedEmail[]> {
  const wanted = { ...filter, whose: 'all' as const, since: EVER, now: await admin.now() }
  return (
    await searchEmails(await openDeps(admin), wanted, { limit }, { patience: Number.POSITIVE_INFINITY })
  ).rows
}

export const verbs: Verbs = (noun) => {
  const { verb, change, admin } = noun
  const listed = (command: Command, length: number): Command =>
    command.option('--status <status>', ...only(EMAIL_LADDER)).option('--limit <n>', ...atMost(length))

  const list = verb('list TEAM', 'List the emails of a team, newest first, without their bodies')
  listed(list.option('--scheduled', 'only scheduled emails'), 10_000).action(
    answer((team_id: string, { status, scheduled, limit }: ListOptions) =>
      find(admin, { team_id, status, scheduled }, limit),
    ),
  )

  const anywhere = verb('find', 'Find emails of any team, newest first, without their bodies')
  const filtered = filterFlags(sinceFlag(anywhere, 'accepted at this time or later, such as 2026-01-31'))
  listed(filtered.option('--team <team>', 'only this team', uuidArgument), 100).action(
    answer(({ team, limit, ...options }: FindOptions) =>
      find(admin, { ...filterOf(options), team_id: team }, limit),
    ),
  )

  verb('show TEAM ID', 'Show an email, its events, and what it is waiting for').action(
    answer(async (team: string, id: string) => showEmail(await openDeps(admin), team, id)),
  )

  verb('file TEAM ID N', 'Save an attachment of an email to a file', {
    N: ['the attachment’s position, from 0', count],
  })
    .requiredOption('--out <file>', 'the file to write')
    .action(
      answer((team: string, id: string, n: number, { out }: { out: string }) =>
        writeAttachment(admin, { team, id, n, out }),
      ),
    )

  const filter: RequeueFilter = {
    flags: filterFlags,
    ids: (tx, team, options) => emailsToRequeue(tx, team, requeueFilter(options)),
    job: (options, found) => ({
      kind: 'email.requeue',
      given: requeueToStore(requeueFilter(options), found),
    }),
  }
  requeueVerb(noun, { channel: EMAIL, statuses: EMAIL_LADDER, texts: textsFor('emails'), filter })

  scheduledVerbs(noun, { channel: EMAIL.name, noun: 'an email' })

  verb(
    'delete TEAM ID',
    'Delete an email and its events. If it was accepted in this period, it no longer counts towards the quota',
  ).action(
    change(async (by, team: string, id: string) => {
      const { created_at } = await removeEmail(by, team, id)
      return { id, created_at, deleted: true }
    }),
  )
}
