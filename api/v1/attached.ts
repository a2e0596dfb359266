/**
 * `attachments` of a send: its shape, and the way from the bytes in a body to contents that an email can refer to.
 * Promises: every refusal names its field with its path; bytes are decoded and digested where the body is parsed, in a
 * thread if it is large; what is refused leaves nothing stored; a send without attachments costs no statement more.
 */
import { createHash } from 'node:crypto'
import { mixed } from 'yup'
import { type Upload, uploadsByIds } from '../../db/content/files/files.sql.ts'
import { withLoaded } from '../../db/content/files/load.ts'
import { Refusal } from '../../db/errors.ts'
import type { EmailFile, EmailItem, ItemFile } from '../../db/messages/emails/call.ts'
import { emailsByKeys } from '../../db/messages/emails/emails.sql.ts'
import type { Tx } from '../../db/postgres/pool.ts'
import { type Described, isObject } from '../../db/text/fields.ts'
import {
  base64Bytes,
  base64Fault,
  contentTypeFault,
  encodedSize,
  endingsOf,
  filenameFault,
  normalizedName,
  typeOfName,
} from '../../db/text/files.ts'
import { isUuid, utf8Bytes } from '../../db/text/strings.ts'

const MOST = 20
const CONTENT_ID = /^[A-Za-z0-9._+@-]{1,128}$/
/** What peers take and we do not. */
const NOT_FETCHED = ['path', 'url', 'href']
/** The headers of a part, and those of a message with its boundaries, in bytes: more than they come to. */
const PART_OVERHEAD = 1_000

/** What an operator allows. */
export type AttachmentLimits = { message_bytes: number; blocked_extensions: ReadonlySet<string> }

type Given = Record<string, unknown>

/** Bytes as JSON.stringify writes a Buffer of Node's. */
const isBufferForm = (value: unknown): value is { type: 'Buffer'; data: unknown[] } =>
  isObject(value) && value.type === 'Buffer' && Array.isArray(value.data)

const isByte = (value: unknown): boolean =>
  Number.isInteger(value) && Number(value) >= 0 && Number(value) <= 255

function contentFault(content: unknown): string | null {
  if (typeof content === 'string') return base64Fault(content)
  if (!isBufferForm(content)) return 'must be a string of base64'
  if (content.data.length === 0) return 'must have at least 1 byte'
  return content.data.every(isByte) ? null : 'must have bytes from 0 to 255 in data'
}

const textFaultOf = (value: unknown, fault: (text: string) => string | null): string | null =>
  value == null ? null : typeof value === 'string' ? fault(value) : 'must be a string'

/** What is wrong with an attachment: the field, '' for the whole, and what it must be. */
function faultOf(given: unknown): { field: string; words: string } | null {
  if (!isObject(given)) return { field: '', words: 'must be an object with filename and content' }
  const fetched = NOT_FETCHED.find((name) => given[name] != null)
  if (fetched) return { field: fetched, words: 'is not supported: give content, files are not fetched' }
  const { content = null, attachment_id: id = null, filename, content_type, content_id } = given
  if (content !== null && id !== null)
    return { field: 'attachment_id', words: 'must not stand beside content' }
  if (content === null && id === null) return { field: 'content', words: 'or attachment_id is required' }
  if (content !== null && filename == null) return { field: 'filename', words: 'is required' }
  const cid = (text: string) =>
    CONTENT_ID.test(text) ? null : 'must have 1 to 128 characters of A-Z, a-z, 0-9 and ._+@-'
  const uuid = (text: string) => (isUuid(text) ? null : 'must be a UUID')
  const found = [
    ['filename', textFaultOf(filename, filenameFault)],
    ['content', content === null ? null : contentFault(content)],
    ['attachment_id', textFaultOf(id, uuid)],
    ['content_type', textFaultOf(content_type, contentTypeFault)],
    ['content_id', textFaultOf(content_id, cid)],
  ] as const
  for (const [field, words] of found) if (words !== null) return { field, words }
  return null
}

/** The first fault of a list, with its path; null when there is none. */
function listFault(value: unknown, path: string): string | null {
  if (!Array.isArray(value)) return `${path} must be an array of attachments`
  if (value.length > MOST) return `${path} must have at most ${MOST} attachments`
  const ids = new Set<unknown>()
  for (const [index, given] of value.entries()) {
    const fault = faultOf(given)
    if (fault) return `${path}[${index}]${fault.field && `.${fault.field}`} ${fault.words}`
    const id = (given as Given).content_id ?? null
    if (id !== null && ids.has(id)) return `${path}[${index}].content_id must be unique in the email`
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
    filename: { type: 'string', minLength: 1, maxLength: 255, description: 'Required beside `content`.' },
    content: {
      description: 'Base64; or a Buffer as Node.js writes it in JSON.',
      anyOf: [{ type: 'string', contentEncoding: 'base64' }, BUFFER],
    },
    attachment_id: {
      type: 'string',
      format: 'uuid',
      description: 'Instead of `content`: an upload of `POST /v1/attachments`.',
    },
    content_type: {
      type: 'string',
      maxLength: 255,
      description: 'Such as `text/calendar; method=REQUEST`; by the ending of the name when absent.',
    },
    content_id: {
      type: 'string',
      pattern: CONTENT_ID.source,
      description: 'For `<img src="cid:…">` in the html: the part is shown inline.',
    },
  },
}

/** The field of a send's schema. */
export const attachments = () =>
  mixed<Given[]>()
    .meta({ jsonSchema: { type: 'array', maxItems: MOST, items: ATTACHMENT } } satisfies Described)
    .test('attachments', '', (value, { path, createError }) => {
      const fault = value === undefined ? null : listFault(value, path)
      return fault === null || createError({ message: () => fault })
    })

/** An attachment as it was given, its content decoded. */
type Attached = { filename: string | null; content_type: string | null; content_id: string | null } & (
  | { bytes: Uint8Array; sha256: string }
  | { attachment_id: string }
)

/** Reads a list that has no fault. */
export function attachedOf(list: readonly Given[] | undefined): Attached[] {
  return (list ?? []).map((given) => {
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

/** An item of a call before its attachments are seen to; `refused` is what else is wrong with it. */
export type Draft = {
  path: string
  idempotency_key: string | null
  attached: readonly Attached[]
  text_bytes: number
} & ({ item: EmailItem } | { refused: { code: Refusal['code']; message: string } })

export const textBytes = (...texts: (string | null | undefined)[]): number =>
  texts.reduce((sum, text) => sum + utf8Bytes(text ?? ''), 0)

type Uploads = ReadonlyMap<string, Upload>

/** What an attachment becomes in its email; `loaded` is filled in once it is. */
function fileOf(attached: Attached, uploads: Uploads): ItemFile {
  const { filename, content_type, content_id } = attached
  if ('bytes' in attached) {
    const name = filename ?? ''
    const size = attached.bytes.length
    const type = content_type ?? typeOfName(name)
    return { filename: name, content_type: type, size, content_id, sha256: attached.sha256, loaded: null }
  }
  const upload = uploads.get(attached.attachment_id)
  if (!upload) return { missing: attached.attachment_id }
  const { size, sha256 } = upload
  const own: EmailFile = {
    filename: filename ?? upload.filename,
    content_type: content_type ?? upload.content_type,
    size,
    content_id,
    sha256,
  }
  return { ...own, loaded: null }
}

/** Refuses a name that the operator blocks. @param at where it stands. @throws Refusal bad_request */
export function refuseBlocked({ blocked_extensions }: AttachmentLimits, filename: string, at: string): void {
  const extension = endingsOf(filename).find((ending) => blocked_extensions.has(ending))
  if (extension === undefined) return
  throw new Refusal('bad_request', `${at} must not end in .${extension}: mail servers refuse such files`)
}

/**
 * The item of a draft, with its files. @throws Refusal bad_request, payload_too_large, then what the draft is refused
 * for
 */
function judged(draft: Draft, uploads: Uploads, limits: AttachmentLimits): EmailItem {
  const { path, attached, text_bytes } = draft
  const files = attached.map((each) => fileOf(each, uploads))
  for (const [index, file] of files.entries()) {
    if (!('missing' in file)) refuseBlocked(limits, file.filename, `${path}attachments[${index}].filename`)
  }
  const size = files.reduce(
    (sum, file) => sum + ('missing' in file ? 0 : encodedSize(file.size) + PART_OVERHEAD),
    encodedSize(text_bytes) + PART_OVERHEAD,
  )
  if (files.length > 0 && size > limits.message_bytes) {
    const most = limits.message_bytes / 1024 / 1024
    const words = `${path}attachments make a message of ${size} bytes as encoded: at most ${most} MiB are taken`
    throw new Refusal('payload_too_large', words)
  }
  if ('refused' in draft) throw new Refusal(draft.refused.code, draft.refused.message)
  const item = { ...draft.item, idempotency_key: draft.idempotency_key }
  return files.length === 0 ? item : { ...item, attachments: files }
}

/** Who sends, through which statements. */
type Attaching = { tx: Tx; teamId: string; limits: AttachmentLimits }

async function uploadsOf({ tx, teamId }: Attaching, drafts: readonly Draft[]): Promise<Uploads> {
  const ids = drafts.flatMap(({ attached }) =>
    attached.flatMap((each) => ('attachment_id' in each ? [each.attachment_id] : [])),
  )
  if (ids.length === 0) return new Map()
  return new Map((await uploadsByIds(tx, teamId, [...new Set(ids)])).map((upload) => [upload.id, upload]))
}

/** The keys that emails are stored under already: what comes with them is a replay and brings nothing. */
async function storedKeys({ tx, teamId }: Attaching, items: readonly EmailItem[]): Promise<Set<string>> {
  const keys = items.flatMap(({ attachments, idempotency_key: key }) =>
    attachments && key !== null ? [{ team_id: teamId, key }] : [],
  )
  if (keys.length === 0) return new Set()
  return new Set((await emailsByKeys(tx, keys)).map(({ idempotency_key }) => idempotency_key))
}

/** Items or refusals of drafts, with attachments that are named but not loaded. */
export async function itemsOf(
  attaching: Attaching,
  drafts: readonly Draft[],
): Promise<(EmailItem | Refusal)[]> {
  const uploads = await uploadsOf(attaching, drafts)
  return drafts.map((draft) => {
    try {
      return judged(draft, uploads, attaching.limits)
    } catch (error) {
      if (error instanceof Refusal) return error
      throw error
    }
  })
}

/** Does the work of accepting items while the contents that they bring are stored. */
export async function withContents<T>(
  attaching: Attaching,
  { drafts, items }: { drafts: readonly Draft[]; items: readonly EmailItem[] },
  accept: (items: readonly EmailItem[]) => Promise<T>,
): Promise<T> {
  if (items.every(({ attachments }) => attachments === undefined)) return accept(items)
  const stored = await storedKeys(attaching, items)
  const wanted = items.filter(({ idempotency_key: key }) => key === null || !stored.has(key))
  const named = new Set(
    wanted.flatMap(({ attachments = [] }) =>
      attachments.flatMap((file) => ('missing' in file ? [] : [file.sha256])),
    ),
  )
  const brought = drafts.flatMap(({ attached }) =>
    attached.flatMap((each) =>
      'bytes' in each && named.has(each.sha256) ? [[each.sha256, each.bytes] as const] : [],
    ),
  )
  const contents = { contents: new Map(brought), uses: [...named] }
  return withLoaded(attaching.tx, attaching.teamId, contents, (loaded) =>
    accept(
      items.map((item) =>
        item.attachments === undefined
          ? item
          : {
              ...item,
              attachments: item.attachments.map((file) =>
                'missing' in file ? file : { ...file, loaded: loaded.get(file.sha256) ?? null },
              ),
            },
      ),
    ),
  )
}
