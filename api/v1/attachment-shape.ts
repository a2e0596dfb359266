/**
 * The shape of `attachments` in a send, and how they are decoded. Each error names its field with its path.
 * Contents are decoded and hashed where the body is parsed, which is a thread if it is large.
 */
import { createHash } from 'node:crypto'
import { mixed } from 'yup'
import type { FieldError } from '../../db/errors.ts'
import { type Described, isObject } from '../../db/validation/fields.ts'
import {
  base64Bytes,
  base64Fault,
  contentTypeFault,
  filenameFault,
  normalizedName,
} from '../../db/validation/files.ts'
import { isUuid } from '../../db/validation/strings.ts'

const MAX_ATTACHMENTS = 20
const CONTENT_ID = /^[A-Za-z0-9._+@-]{1,128}$/
/** Fields of other services' APIs that we don't support. */
const NOT_FETCHED = ['path', 'url', 'href']
type RawAttachment = Record<string, unknown>

/** True for bytes as JSON.stringify writes a Buffer. */
const isBufferForm = (value: unknown): value is { type: 'Buffer'; data: unknown[] } =>
  isObject(value) && value.type === 'Buffer' && Array.isArray(value.data)

const isByte = (value: unknown): boolean =>
  Number.isInteger(value) && Number(value) >= 0 && Number(value) <= 255

function contentFault(content: unknown): string | null {
  if (typeof content === 'string') return base64Fault(content)
  if (!isBufferForm(content)) return 'must be a base64 string'
  if (content.data.length === 0) return 'must have at least 1 byte'
  return content.data.every(isByte) ? null : 'must have bytes from 0 to 255 in data'
}

const findTextFault = (value: unknown, fault: (text: string) => string | null): string | null =>
  value == null ? null : typeof value === 'string' ? fault(value) : 'must be a string'

/** Returns the first error of an attachment, or null. `field` is '' if it is about the attachment itself. */
function findFault(given: unknown): FieldError | null {
  if (!isObject(given)) return { field: '', problem: 'must be an object with filename and content' }
  const fetched = NOT_FETCHED.find((name) => given[name] != null)
  if (fetched)
    return {
      field: fetched,
      problem: 'is not supported. Send the file as base64 in content, or upload it first',
    }
  if (given.contentId != null)
    return { field: 'contentId', problem: 'is called content_id here. Use that name' }
  const { content = null, attachment_id: id = null, filename, content_type, content_id } = given
  if (content !== null && id !== null)
    return { field: 'attachment_id', problem: "can't be combined with content" }
  if (content === null && id === null) return { field: 'content', problem: 'or attachment_id is required' }
  if (content !== null && filename == null) return { field: 'filename', problem: 'is required' }
  const cid = (text: string) =>
    CONTENT_ID.test(text) ? null : 'must have 1 to 128 characters of A-Z, a-z, 0-9 and ._+@-'
  const uuid = (text: string) => (isUuid(text) ? null : 'must be a UUID')
  const found = [
    ['filename', findTextFault(filename, filenameFault)],
    ['content', content === null ? null : contentFault(content)],
    ['attachment_id', findTextFault(id, uuid)],
    ['content_type', findTextFault(content_type, contentTypeFault)],
    ['content_id', findTextFault(content_id, cid)],
  ] as const
  for (const [field, problem] of found) if (problem !== null) return { field, problem }
  return null
}

/** Returns the first error of a list with its path, or null. */
function listFault(value: unknown, path: string): FieldError | null {
  if (!Array.isArray(value)) return { field: path, problem: 'must be an array of attachments' }
  if (value.length > MAX_ATTACHMENTS)
    return { field: path, problem: `must have at most ${MAX_ATTACHMENTS} attachments` }
  const ids = new Set<unknown>()
  for (const [index, given] of value.entries()) {
    const fault = findFault(given)
    if (fault) return { ...fault, field: `${path}[${index}]${fault.field && `.${fault.field}`}` }
    const id = (given as RawAttachment).content_id ?? null
    if (id !== null && ids.has(id))
      return { field: `${path}[${index}].content_id`, problem: 'must be unique within the email' }
    ids.add(id)
  }
  return null
}

const BUFFER = {
  type: 'object',
  properties: { type: { const: 'Buffer' }, data: { type: 'array', items: { type: 'integer' } } },
  required: ['type', 'data'],
}

const ATTACHMENT = {
  type: 'object',
  properties: {
    filename: { type: 'string', minLength: 1, maxLength: 255, description: 'Required with `content`.' },
    content: {
      description: 'Base64, or a Buffer as Node.js serializes it to JSON.',
      anyOf: [{ type: 'string', contentEncoding: 'base64' }, BUFFER],
    },
    attachment_id: {
      type: 'string',
      format: 'uuid',
      description: 'The ID of an upload (`POST /v1/attachments`), instead of `content`.',
    },
    content_type: {
      type: 'string',
      maxLength: 255,
      description: 'Such as `text/calendar; method=REQUEST`. The default depends on the file extension.',
    },
    content_id: {
      type: 'string',
      pattern: CONTENT_ID.source,
      description: 'The ID in `<img src="cid:…">`. The file is shown inline.',
    },
  },
}

export const attachments = () =>
  mixed<RawAttachment[]>()
    .meta({ jsonSchema: { type: 'array', maxItems: MAX_ATTACHMENTS, items: ATTACHMENT } } satisfies Described)
    .test('attachments', '', (value, { path, createError }) => {
      const fault = value === undefined ? null : listFault(value, path)
      return fault === null || createError({ path: fault.field, message: () => fault.problem })
    })

/** An attachment with its content decoded. */
export type Attached = { filename: string | null; content_type: string | null; content_id: string | null } & (
  | { bytes: Uint8Array; sha256: string }
  | { attachment_id: string }
)

/** Decodes a list without errors. */
export function readAttachments(list: readonly RawAttachment[]): Attached[] {
  return list.map((given) => {
    const { filename, content_type, content_id, content, attachment_id } = given
    const named = {
      filename: filename == null ? null : normalizedName(String(filename)),
      content_type: content_type == null ? null : String(content_type),
      content_id: content_id == null ? null : String(content_id),
    }
    if (attachment_id != null) return { ...named, attachment_id: String(attachment_id).toLowerCase() }
    const bytes = isBufferForm(content)
      ? Uint8Array.from(content.data as number[])
      : base64Bytes(String(content))
    return { ...named, bytes, sha256: createHash('sha256').update(bytes).digest('hex') }
  })
}
