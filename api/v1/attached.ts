/**
 * Turns the attachments of a send into files that an email can refer to. A rejected send stores nothing. A
 * send without attachments doesn't use this module.
 */

import { type Upload, uploadsByIds } from '../../db/content/files/files.sql.ts'
import { withLoaded } from '../../db/content/files/load.ts'
import { invalidField, RequestError } from '../../db/errors.ts'
import { fill } from '../../db/fill.ts'
import type { EmailFile, EmailItem, ItemFile } from '../../db/messages/emails/call.ts'
import { emailsByKeys } from '../../db/messages/emails/emails.sql.ts'
import type { Tx } from '../../db/postgres/pool.ts'
import { typeOfName } from '../../db/validation/file-types.ts'
import { encodedSize, extensionsIn } from '../../db/validation/files.ts'
import { LARGEST_PART, utf8Bytes } from '../../db/validation/strings.ts'
import type { Attached } from './attachment-shape.ts'
import { TEXTS } from './texts.ts'

/** More bytes than the headers of a part, or those of a message with its boundaries. */
const PART_OVERHEAD = 1_000

export type AttachmentLimits = { message_bytes: number; blocked_extensions: ReadonlySet<string> }

/** A send whose shape is valid. Its attachments are checked first. */
type Draft = {
  path: string
  attached: readonly Attached[]
  send: { html?: string | undefined; text?: string | undefined; template_id?: string | undefined }
}

type Uploads = ReadonlyMap<string, Upload>

/** Converts an attachment to a file of its email. `loaded` is set later. */
function toFile(attached: Attached, uploads: Uploads): ItemFile {
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

/** Rejects a filename with a blocked extension. @param at the path of the field @throws RequestError bad_request */
export function refuseBlocked({ blocked_extensions }: AttachmentLimits, filename: string, at: string): void {
  const extension = extensionsIn(filename).find((ending) => blocked_extensions.has(ending))
  if (extension === undefined) return
  throw invalidField(at, fill(TEXTS.blockedExtension, { extension }))
}

const textBytes = ({ html = '', text = '' }: Draft['send']): number => utf8Bytes(html) + utf8Bytes(text)

/** @throws RequestError payload_too_large */
function assertFits(size: number, { message_bytes }: AttachmentLimits, field: string): void {
  if (size <= message_bytes) return
  const [mib, most] = [size / 1024 / 1024, message_bytes / 1024 / 1024]
  const problem = fill(TEXTS.messageTooLarge, { size: Math.ceil(mib * 10) / 10, most })
  throw new RequestError('payload_too_large', { field, problem })
}

/** The longest html and text only exceed a low limit. ASCII is sent unencoded, so their own size counts. */
function withoutFiles({ path, send }: Omit<Draft, 'attached'>, limits: AttachmentLimits): ItemFile[] {
  const { html, text, template_id } = send
  if (limits.message_bytes < 2 * LARGEST_PART + PART_OVERHEAD) {
    const size = textBytes(template_id === undefined ? { html, text } : { text }) + PART_OVERHEAD
    assertFits(size, limits, `${path}${template_id === undefined ? 'html' : 'text'}`)
  }
  return []
}

/** Checks attachments. @returns the files, not loaded. @throws RequestError bad_request, payload_too_large */
function judged({ path, attached, send }: Draft, uploads: Uploads, limits: AttachmentLimits): ItemFile[] {
  if (attached.length === 0) return withoutFiles({ path, send }, limits)
  const files = attached.map((each) => toFile(each, uploads))
  for (const [index, file] of files.entries()) {
    if (!('missing' in file)) refuseBlocked(limits, file.filename, `${path}attachments[${index}].filename`)
  }
  const size = files.reduce(
    (sum, file) => sum + ('missing' in file ? 0 : encodedSize(file.size) + PART_OVERHEAD),
    encodedSize(textBytes(send)) + PART_OVERHEAD,
  )
  assertFits(size, limits, `${path}attachments`)
  return files
}

/** The team that sends, its limits, and where statements run. */
type FileOptions = { tx: Tx; teamId: string; limits: AttachmentLimits }

async function loadUploads({ tx, teamId }: FileOptions, drafts: readonly Draft[]): Promise<Uploads> {
  const ids = drafts.flatMap(({ attached }) =>
    attached.flatMap((each) => ('attachment_id' in each ? [each.attachment_id] : [])),
  )
  if (ids.length === 0) return new Map()
  return new Map((await uploadsByIds(tx, teamId, [...new Set(ids)])).map((upload) => [upload.id, upload]))
}

/** Returns the keys that emails are stored with. Items with these are replays, and store no attachments. */
async function storedKeys({ tx, teamId }: FileOptions, items: readonly EmailItem[]): Promise<Set<string>> {
  const keys = items.flatMap(({ attachments, idempotency_key: key }) =>
    attachments && key !== null ? [{ team_id: teamId, key }] : [],
  )
  if (keys.length === 0) return new Set()
  return new Set((await emailsByKeys(tx, keys)).map(({ idempotency_key }) => idempotency_key))
}

/**
 * Reads the uploads of drafts. @returns a function that checks a draft's attachments and returns its files
 * @throws RequestError bad_request, payload_too_large from that function
 */
export async function fileMaker(attaching: FileOptions, drafts: readonly Draft[]) {
  const uploads = await loadUploads(attaching, drafts)
  return (draft: Draft): ItemFile[] => judged(draft, uploads, attaching.limits)
}

/** Runs `accept` while the contents of the items' attachments are stored. */
export async function withContents<T>(
  attaching: FileOptions,
  { drafts, items }: { drafts: readonly Draft[]; items: readonly EmailItem[] },
  accept: (items: readonly EmailItem[]) => Promise<T>,
): Promise<T> {
  const stored = await storedKeys(attaching, items)
  const wanted = items.filter(({ idempotency_key: key }) => key === null || !stored.has(key))
  const named = new Set(
    wanted.flatMap(({ attachments = [] }) =>
      attachments.flatMap((file) => ('missing' in file ? [] : [file.sha256])),
    ),
  )
  const bytes = drafts.flatMap(({ attached }) =>
    attached.flatMap((each) =>
      'bytes' in each && named.has(each.sha256) ? [[each.sha256, each.bytes] as const] : [],
    ),
  )
  const contents = { contents: new Map(bytes), uses: [...named] }
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
