/**
 * Exports a team's stored data about an address, as one JSON value. It finds the same data as an erasure, with
 * person.ts and person.sql.ts. It doesn't reveal other recipients: an email to several contains only the exported
 * address's positions and events, and server responses are redacted. Internal email is listed without its links.
 * Lists are streamed in batches.
 */
import { NIL } from 'uuid'
import { type By, record } from '../../accounts/audit/record.ts'
import { requireTeam } from '../../accounts/teams/view.ts'
import { contactByIdentity } from '../../audience/contacts/contacts.sql.ts'
import { noContact } from '../../audience/contacts/edit.ts'
import { erasureHash } from '../../audience/contacts/erased.ts'
import { topicsOfContact } from '../../audience/subscription/subscription.sql.ts'
import { suppressedAddress } from '../../audience/suppressions/addresses.sql.ts'
import { showContact, shownSuppression } from '../../audience/suppressions/lift.ts'
import { RequestError } from '../../errors.ts'
import type { Database, Tx } from '../../postgres/pool.ts'
import type { Secrets } from '../../process/secrets.ts'
import { addressees } from '../../validation/addressees.ts'
import { shownTimes } from '../../validation/moments.ts'
import {
  type ExportedRow,
  emailsToShow,
  eventsToShow,
  reportsToShow,
  skipsToShow,
  webhooksAboutDeleted,
  webhooksToShow,
} from './export.sql.ts'
import { emailsTo, type IdRange, testsShowing } from './person.sql.ts'
import { buildPerson, type ErasedPerson, isPerson, isSoleRecipient, namedIn } from './person.ts'

/** How many rows a statement looks at. */
const EXPORT_BATCH = 200

type Finding = { tx: Tx; person: ErasedPerson }

/** Text that can contain an address, between delimiters. A single character class, so that matching is linear. */
const WORDS = /[^\s<>()[\]{},;:"'=]+/g

const withoutFullStops = (word: string): string => {
  let end = word.length
  while (word[end - 1] === '.') end--
  return word.slice(0, end)
}

const withoutOthers = (text: string, { identity }: ErasedPerson): string =>
  text.replace(WORDS, (word) =>
    !word.includes('@') || isPerson(withoutFullStops(word), identity) ? word : '…',
  )

type Events = Awaited<ReturnType<typeof eventsToShow>>
type Webhooks = Awaited<ReturnType<typeof webhooksToShow>>

/** The stored content of an email to this address only. */
function toContent({ attachments, status, subject, html, text, template_version_id, ...row }: ExportedRow) {
  const { variables, headers, reply_to, tags, idempotency_key } = row
  return {
    ...{ status, subject, html, text, template_version_id, variables, headers },
    ...{ reply_to, tags, idempotency_key },
    attachments: (attachments ?? []).map(({ filename, content_type, size }) => ({
      ...{ filename, content_type, size },
    })),
  }
}

/** Webhook messages. The state of those about other recipients is left out. */
const shownWebhooks = (all: Webhooks, { identity }: ErasedPerson) =>
  all.map(({ subject_id: _, recipient, type, ...message }) => {
    const own = recipient === null || isPerson(recipient, identity)
    return { ...message, type: own ? type : null }
  })

const selectWebhooks = (all: Webhooks, id: string, person: ErasedPerson) =>
  shownWebhooks(
    all.filter(({ subject_id }) => subject_id === id),
    person,
  )

/** The address's positions in an email's lists. `cc` and `bcc` are only included if they contain it. */
function placesOf(row: ExportedRow, { identity }: ErasedPerson) {
  const { to, cc, bcc } = addressees(row)
  const own = (list: readonly string[]) => list.filter((recipient) => isPerson(recipient, identity))
  const copies = Object.entries({ cc: own(cc), bcc: own(bcc) }).filter(([, list]) => list.length > 0)
  return { to: own(to), ...Object.fromEntries(copies) }
}

function shownEmail(
  row: ExportedRow,
  person: ErasedPerson,
  { events, webhooks }: { events: Events; webhooks: Webhooks },
) {
  const { id, created_at, from, to_emails, broadcast_id, template_id, internal } = row
  const { identity } = person
  const sole = isSoleRecipient(to_emails, identity)
  return {
    ...{ id, created_at, ...shownTimes(row), from, broadcast_id, template_id },
    ...placesOf(row, person),
    ...(sole && !internal ? toContent(row) : {}),
    events: events
      .filter(({ email_id, names }) => email_id === id && (sole || names))
      .map(({ kind, occurred_at, detail, recipient }) => ({
        ...{ kind, occurred_at, detail: withoutOthers(detail, person) },
        recipient: recipient === null || isPerson(recipient, identity) ? recipient : null,
      })),
    webhooks: selectWebhooks(webhooks, id, person),
  }
}

async function* emails({ tx, person }: Finding) {
  const { teamId, spellings, pattern } = person
  for (let after: string = NIL; ; ) {
    const found = await emailsTo(tx, teamId, spellings, { after, limit: EXPORT_BATCH })
    const ids = namedIn(found, person).map(({ id }) => id)
    if (ids.length > 0) {
      const about = {
        events: await eventsToShow(tx, teamId, ids, pattern),
        webhooks: await webhooksToShow(tx, teamId, ids),
      }
      for (const row of await emailsToShow(tx, teamId, ids)) yield shownEmail(row, person, about)
    }
    const last = found.at(-1)
    if (!last || found.length < EXPORT_BATCH) return
    after = last.id
  }
}

/** Broadcast tests that show the contact to other recipients. Contains the content, not the recipients. */
async function* tests({ tx, person }: Finding) {
  const { teamId, identity } = person
  for (let after: string = NIL; ; ) {
    const ids = await testsShowing(tx, teamId, identity, { after, limit: EXPORT_BATCH })
    if (ids.length === 0) return
    const webhooks = await webhooksToShow(tx, teamId, ids)
    for (const row of await emailsToShow(tx, teamId, ids)) {
      const { id, created_at, subject, template_version_id, variables } = row
      const shown = { id, created_at, subject, template_version_id, variables }
      yield { ...shown, webhooks: selectWebhooks(webhooks, id, person) }
    }
    after = ids.at(-1) ?? after
    if (ids.length < EXPORT_BATCH) return
  }
}

async function* broadcast_skips({ tx, person }: Finding) {
  for (const skip of await skipsToShow(tx, person.teamId, person.spellings))
    yield { ...skip, detail: withoutOthers(skip.detail, person) }
}

/** About emails and contacts that were deleted before. */
async function* webhooks({ tx, person }: Finding) {
  for (let after: string | null = NIL; after !== null; ) {
    const range: IdRange = { after, limit: EXPORT_BATCH }
    const { last, found } = await webhooksAboutDeleted(tx, person.teamId, person.pattern, range)
    yield* shownWebhooks(found, person)
    after = last
  }
}

async function* reports({ tx, person: { teamId, bytesPattern } }: Finding) {
  for (let after: string | null = NIL; after !== null; ) {
    const range: IdRange = { after, limit: EXPORT_BATCH }
    const { last, found } = await reportsToShow(tx, teamId, bytesPattern, range)
    yield* found
    after = last
  }
}

/** Why the address is suppressed, whether or not it is a contact. */
async function* suppressions({ tx, person }: Finding) {
  const found = await suppressedAddress(tx, person.teamId, person.identity)
  if (found) yield { ...shownSuppression(found), response: withoutOthers(found.response, person) }
}

const LISTS = Object.entries<(at: Finding) => AsyncGenerator<object>>({
  emails,
  tests,
  broadcast_skips,
  suppressions,
  webhooks,
  reports,
})

/** Returns the contact with its left topics, suppression and webhooks, or null. */
async function readContact({ tx, person }: Finding) {
  const { teamId, identity } = person
  if (!(await contactByIdentity(tx, teamId, identity))) return null
  const { suppression_cause: cause, ...contact } = await showContact(tx, teamId, identity)
  const held = await topicsOfContact(tx, teamId, identity, 'look')
  const webhooks = await webhooksToShow(tx, teamId, [contact.id])
  return {
    ...contact,
    suppression_cause: cause && { ...cause, detail: withoutOthers(cause.detail, person) },
    left_topic_ids: held?.left_topic_ids ?? [],
    webhooks: selectWebhooks(webhooks, contact.id, person),
  }
}

type Exporting = Omit<By, 'tx'> & { database: Database; secrets: Pick<Secrets, 'sign'> }

async function noteExport({ database, now, actor, secrets }: Exporting, { teamId, identity }: ErasedPerson) {
  const subject = erasureHash(secrets, teamId, identity).toString('hex')
  await record({ tx: database, now, actor }, { team_id: teamId, action: 'contact.export', subject })
}

/** @throws RequestError not_found for the team; contact_not_found if nothing is stored. */
export async function exportPerson(at: Exporting, teamId: string, identity: string) {
  const finding = { tx: at.database, person: buildPerson(teamId, identity) }
  await requireTeam(at.database, teamId)
  const contact = await readContact(finding)
  const lists: [string, object[]][] = []
  for (const [name, list] of LISTS) lists.push([name, await Array.fromAsync(list(finding))])
  if (contact === null && lists.every(([, items]) => items.length === 0))
    throw new RequestError('contact_not_found', `Nothing is stored about ${identity}.`)
  await noteExport(at, finding.person)
  return { email: identity, exported_at: at.now.toISOString(), contact, ...Object.fromEntries(lists) }
}

/** Returns the same as text in pieces, for an existing contact. @throws RequestError contact_not_found. */
export async function exportContact(at: Exporting, teamId: string, identity: string) {
  const finding = { tx: at.database, person: buildPerson(teamId, identity) }
  const contact = await readContact(finding)
  if (contact === null) throw noContact()
  await noteExport(at, finding.person)
  const head = JSON.stringify({ email: identity, exported_at: at.now.toISOString(), contact })
  async function* pieces() {
    yield head.slice(0, -1)
    for (const [name, list] of LISTS) {
      yield `,${JSON.stringify(name)}:[`
      let separator = ''
      for await (const item of list(finding)) {
        yield separator + JSON.stringify(item)
        separator = ','
      }
      yield ']'
    }
    yield '}\n'
  }
  return pieces()
}
