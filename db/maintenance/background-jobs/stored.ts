/**
 * Reads what background jobs store: inputs, cursors and results, perhaps of another version. Unknown fields are
 * ignored, so a changed meaning needs a new kind. An unknown field of a filter might select fewer rows, so such a job
 * is left to newer versions.
 */
import { type AnySchema, array, boolean, type InferType, mixed, number, object, string } from 'yup'
import { CAUSES } from '../../audience/contacts/effect.ts'
import { EMAIL_LADDER } from '../../channels/email.ts'
import { QUEUES } from '../../delivery/queues.ts'
import { REPLAYED } from '../../messages/webhooks/listing.sql.ts'

/** Returns the stored value, or null if it has another form. */
export type Reader<T> = (stored: unknown) => T | null

const reads =
  <S extends AnySchema>(schema: S): Reader<InferType<S>> =>
  (stored) =>
    stored !== undefined && schema.isValidSync(stored, { strict: true }) ? stored : null

/** Reads either of two forms. */
export const either =
  <A, B>(one: Reader<A>, other: Reader<B>): Reader<A | B> =>
  (stored) =>
    one(stored) ?? other(stored)

const text = string().defined()
const count = number().integer().min(0)
const words = { words: text }

/** Reads an object without fields of interest. */
export const readAnything = reads(object())

/** Where a search in the order of IDs continues. */
export const readAfter = reads(object({ after: text }))

/** Reads the result of a kind that counts rows. @param name of the count. */
export const readCount = (name: string): Reader<Readonly<Record<string, number | undefined>>> =>
  reads(object({ [name]: count }))
export const readRefused = reads(object({ refused: count }))
export const readCopied = reads(
  object({ soft_bounces: count, manual: count, bounce: count, complaint: count }),
)

const emailFilter = object({
  recipient: string(),
  subject: string(),
  text: string(),
  domain: string(),
  id: string(),
  tag: string(),
  template_id: string(),
  broadcast_id: string(),
  scheduled: boolean(),
  failed: boolean(),
  in_broadcast: boolean(),
  from: string(),
  to: string(),
  status: string().oneOf(EMAIL_LADDER),
  whose: string().oneOf(['all' as const]),
}).noUnknown()
const matching = object({
  ...words,
  /** The query of the page, which describes the job while it runs. */
  query: string(),
  filter: emailFilter.required(),
  between: object({ newest: text, oldest: text }).required(),
  most: count.defined(),
  seen: text,
})
export const readMatching = reads(matching)
export const readMatchingRequeue = reads(
  matching.shape({ force: boolean().defined(), at: string(), waiting: boolean() }),
)
export const readBatchCursor = reads(object({ taken: count.defined(), before: string() }))

/** A manual selection by the CLI. Version 0.1.0 stored `ids`. */
const picked = object({
  ...words,
  // Version 0.1.0 could store 100,000, and yup's `array` needs seconds for those.
  ids: mixed<string[]>(
    (value): value is string[] => Array.isArray(value) && value.every((id) => typeof id === 'string'),
  ),
  status: string(),
  since: string(),
  force: boolean().defined(),
  until: text,
  at: text,
})
export const readPicked = reads(picked.noUnknown())
export const readPickedWebhooks = reads(picked.shape({ webhook: string(), type: string() }).noUnknown())

/** Without `most`, all dead letters that existed at `seen`. */
const redriving = object({
  queue: string().oneOf(QUEUES).defined(),
  reason: string().nullable().defined(),
  seen: text,
  most: count,
})
export const readRedriving = reads(redriving.noUnknown())

/** `words`: an additional detail in the audit log. */
export const readImporting = reads(object({ import_id: text, file_name: text, words: string() }))
const csvPlace = object({
  ...{ at: count.defined(), line: count.defined(), breaks: count.defined(), separator: text },
  header: array(text).defined(),
})
export const readImportCursor = reads(
  object({
    pass: string().oneOf(['check', 'store']).defined(),
    place: csvPlace.nullable(),
    records: count.defined(),
  }),
)

export const readReplay = reads(
  object({
    endpoint_id: text,
    what: string().oneOf(REPLAYED).defined(),
    ...{ from: string(), to: string(), type: string(), seen: text, most: count },
  }).noUnknown(),
)

export const readLift = reads(
  object({
    ...words,
    filter: object({
      ...{ cause: string().oneOf(CAUSES), response: string(), domain: string(), email: string() },
      ...{ since: string(), until: string(), bounced: boolean(), seen: string() },
    })
      .noUnknown()
      .required(),
    reason: text,
    most: count.defined(),
  }),
)

/** `subject` identifies the address in the audit log without revealing it. */
export const readErasing = reads(object({ identity: text, subject: text }))
export const readErasureCursor = either(
  reads(object({ through: string().oneOf(['emails', 'webhooks', 'reports']).defined(), after: text })),
  reads(object({ through: string().oneOf(['tests', 'files']).defined() })),
)
export const readErasure = reads(
  object({ contact: boolean(), emails: count, waiting_emails_deleted: count, reports: count }),
)
