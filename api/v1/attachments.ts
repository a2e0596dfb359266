/**
 * POST /v1/attachments uploads a file that emails can refer to. Its name and type are checked before a byte
 * is read. The bytes are stored as they arrive (db/content/files/upload.ts).
 */

import type { IncomingHttpHeaders } from 'node:http'
import { parse as parseDisposition } from 'content-disposition'
import { object } from 'yup'
import { upload } from '../../db/content/files/upload.ts'
import { invalidField, RequestError } from '../../db/errors.ts'
import { text } from '../../db/validation/fields.ts'
import { typeOfName } from '../../db/validation/file-types.ts'
import { CHUNK, contentTypeFault, filenameFault, normalizedName } from '../../db/validation/files.ts'
import { textFault, utf8Text } from '../../db/validation/strings.ts'
import { keyOnly } from '../http/auth.ts'
import { tracing } from '../http/errors.ts'
import { defineQuery } from '../http/input.ts'
import { assertUncompressed, MAX_UPLOAD_BYTES } from '../http/read-body.ts'
import { ABOUT } from './about.ts'
import { refuseBlocked } from './attached.ts'
import { teamRoute, type V1Route } from './deps.ts'
import { TEXTS } from './texts.ts'

/** How long emails can refer to an upload. */
const UPLOAD_KEPT_DAYS = 7

/** Decodes a header as UTF-8 if possible. Node reads headers as Latin-1, but many clients send UTF-8. */
const decodeUtf8 = (latin1: string): string => utf8Text(Buffer.from(latin1, 'latin1')) ?? latin1

function dispositionName(header: string | undefined): string | undefined {
  if (header === undefined) return undefined
  try {
    const { filename } = parseDisposition(header).parameters
    // `filename*` is already decoded.
    return filename === undefined || /;\s*filename\*\s*=/i.test(header) ? filename : decodeUtf8(filename)
  } catch {
    throw new RequestError('bad_request', TEXTS.badDisposition)
  }
}

/** Returns the name of the uploaded file. @throws RequestError bad_request */
function readFilename(given: string | undefined, headers: IncomingHttpHeaders): string {
  const name = given ?? dispositionName(headers['content-disposition'])
  if (name === undefined) throw invalidField('filename', TEXTS.noFilename)
  const fault = textFault(name)?.problem ?? filenameFault(name)
  if (fault) throw invalidField('filename', fault)
  return normalizedName(name)
}

/** curl's default type, which is unrelated to the file. */
const CURL_DEFAULT_TYPE = /^application\/x-www-form-urlencoded\b/i

function refuseForms(given: string | undefined): void {
  if (/^multipart\//i.test(given ?? '')) throw new RequestError('bad_request', TEXTS.multipartType)
}

function readType(given: string | undefined, filename: string): string {
  if (given === undefined || given === '' || CURL_DEFAULT_TYPE.test(given)) return typeOfName(filename)
  const fault = contentTypeFault(given)
  if (fault) throw invalidField('Content-Type', fault)
  return given
}

export const attachmentRoutes: readonly V1Route[] = [
  teamRoute({
    method: 'POST',
    path: '/v1/attachments',
    about: ABOUT.uploadAttachment,
    access: keyOnly('emails:send'),
    query: defineQuery(object({ filename: text() })),
    raw: true,
    async handle({ query, headers, pieces, principal }, { database, attachments }) {
      refuseForms(headers['content-type'])
      const filename = readFilename(query.filename, headers)
      refuseBlocked(attachments, filename, 'filename')
      const content_type = readType(headers['content-type'], filename)
      assertUncompressed(headers)
      const body = await upload(database, principal.team_id, {
        filename,
        content_type,
        days: UPLOAD_KEPT_DAYS,
        read: (take) => pieces({ limit: MAX_UPLOAD_BYTES, size: CHUNK }, take),
      })
      return { status: 201, body, trace: tracing([body.id]) }
    },
  }),
]
