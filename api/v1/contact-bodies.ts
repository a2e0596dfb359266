/** The bodies of the calls that change contacts and subscriptions. */
import { object } from 'yup'
import { contactProperties, statusClaims, upsertSchema } from '../../db/audience/contacts/fields.ts'
import { REQUIRED } from '../../db/errors.ts'
import { address, otherSpellings, uuids } from '../../db/validation/fields.ts'
import { type BodyShape, json, parseBatch, withoutByteOrderMark } from '../http/input.ts'

const BULK_LIMIT = 1_000

/** The fields of PATCH, and of POST in addition to the email. */
const changeSchema = object({
  properties: contactProperties(),
  topic_ids: uuids(),
  ...statusClaims(),
  ...otherSpellings({ topicIds: 'topic_ids' }),
})

export const changeBody = json(changeSchema)
export const createBody = json(changeSchema.shape({ email: address().required(REQUIRED) }))

/** Without `topic_ids` the contact leaves everything, so another spelling must not be ignored. */
export const unsubscribeBody = json(
  object({
    email: address().required(REQUIRED),
    topic_ids: uuids(),
    ...otherSpellings({ topicIds: 'topic_ids' }),
  }),
)

/** The call as raw bytes. The worker validates its items. */
export const bulkBody: BodyShape<{ length: number; bytes: Buffer }> = {
  schema: upsertSchema,
  batch: { field: 'contacts', most: BULK_LIMIT },
  read: (value) => ({ length: parseBatch(value, 'contacts', BULK_LIMIT).length, bytes: Buffer.alloc(0) }),
  // These stay bytes on their way to the database. 9 MiB as text blocked other requests three times.
  withBytes: ({ length }, bytes) => ({ length, bytes: withoutByteOrderMark(bytes) }),
}
