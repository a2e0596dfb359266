/** The bodies of calls about broadcasts. The fields of a draft are in db/messages/broadcasts/fields.ts. */
import { array, object } from 'yup'
import { REQUIRED } from '../../db/errors.ts'
import { changeSchema, newSchema, ownTime } from '../../db/messages/broadcasts/fields.ts'
import { address, mailbox, noCopies, noFiles, unsupported } from '../../db/validation/fields.ts'
import { json, optionalJson } from '../http/input.ts'

export const newBody = json(newSchema)
export const changeBody = json(changeSchema)

const testSchema = object({
  ...noCopies(),
  ...noFiles(),
  to: array(mailbox().required('must be an email address'))
    .typeError('must be an array of email addresses, such as ["name@example.com"]')
    .required(REQUIRED)
    .min(1, 'must have at least 1 address')
    .max(5, 'must have at most 5 addresses'),
  contact: address(),
  send_at: unsupported(),
  scheduled_at: unsupported(),
  expires_in: unsupported(),
  scheduledAt: unsupported(),
  sendAt: unsupported(),
})

export const testBody = json(testSchema)
export const sendBody = optionalJson(object({ ...noCopies(), ...noFiles(), ...ownTime() }))
