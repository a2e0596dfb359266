/**
 * Attachments of an email: their list, downloads, and inline images in the preview. Files are always
 * downloaded and never displayed, whatever their type. Inline images come only from the email itself, and
 * their size is limited.
 */

import { Readable } from 'node:stream'
import disposition from 'content-disposition'
import { piecesOf } from '../../../db/content/files/read.ts'
import { RequestError } from '../../../db/errors.ts'
import { fill } from '../../../db/fill.ts'
import type { EmailFile } from '../../../db/messages/emails/call.ts'
import type { ShownEmail } from '../../../db/messages/emails/show.ts'
import { percentDecoded } from '../../../db/validation/strings.ts'
import { byteWords, text } from '../components/cell.ts'
import type { Section } from '../components/section.ts'
import { requireFound } from '../server/already.ts'
import { buildTable } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { type PageAnswer, raw, type TeamRequest, teamPath } from '../server/page.ts'
import { TEXTS } from '../texts.ts'

export const filesTable = ({ id, attachments }: ShownEmail, { team }: TeamRequest): Section | undefined =>
  attachments &&
  buildTable(
    attachments,
    ({ filename, content_type, size, content_id }, index) => ({
      Name: text(filename, { href: teamPath(team, 'emails', id, 'files', String(index)) }),
      Type: text(content_type),
      Size: text(byteWords(size)),
      'Inline as': text(content_id && `cid:${content_id}`),
    }),
    { title: 'Attachments', grow: ['Name', 'Type'], note: 'Click a name to download the file.', empty: '' },
  )

/** Returns the attachment at an index. @throws RequestError not_found */
export function fileAt({ attachments = [] }: ShownEmail, place: string): EmailFile {
  const file = /^\d{1,2}$/.test(place) ? attachments[Number(place)] : undefined
  return requireFound(file, fill(TEXTS.noAttachment, { place }))
}

/** Streams a file as a download. @throws RequestError not_found if it has been deleted */
export async function fileAnswer(
  { team }: TeamRequest,
  { database }: PageDeps,
  { filename, size, sha256 }: EmailFile,
): Promise<PageAnswer> {
  const pieces = piecesOf(database, { team_id: team.id, sha256 })
  // Reads before the response starts, because the file may have been deleted.
  const first = await pieces.next()
  async function* bytes() {
    if (!first.done) yield first.value
    yield* pieces
  }
  return raw(
    {
      'Content-Type': 'application/octet-stream',
      'Content-Disposition': disposition(filename),
      'Content-Length': String(size),
      'Content-Security-Policy': "sandbox; default-src 'none'",
    },
    Readable.from(bytes()),
  )
}

const PICTURE = /^image\/(?:png|jpe?g|gif|webp|avif|bmp|svg\+xml)(?=;|$)/i
/** A reference in HTML to a part of the same email, at the start of an attribute or of a url(). */
const CID = /(["'(=]\s*)cid:([\w.@%+-]{1,400})/gi
/** Limit for the inline images of a preview, in bytes. Further images are left out. */
const MAX_PREVIEW_LENGTH = 12 * 1024 * 1024

const decoded = (text: string): string => percentDecoded(text) ?? text

async function dataUrl(file: EmailFile, { team }: TeamRequest, { database }: PageDeps): Promise<string> {
  const chunks: Buffer[] = []
  for await (const piece of piecesOf(database, { team_id: team.id, sha256: file.sha256 })) chunks.push(piece)
  return `data:${PICTURE.exec(file.content_type)?.[0]};base64,${Buffer.concat(chunks).toString('base64')}`
}

/** Embeds inline images into HTML. References to anything else, or beyond the limit, don't change. */
export async function withPictures(
  { html, attachments = [] }: ShownEmail,
  request: TeamRequest,
  deps: PageDeps,
): Promise<string> {
  const named = new Set([...html.matchAll(CID)].map(([, , id = '']) => decoded(id)))
  const urls = new Map<string, string>()
  let read = 0
  for (const file of attachments) {
    const { content_id, content_type, size } = file
    if (content_id === null || !named.has(content_id) || !PICTURE.test(content_type)) continue
    read += size
    if (read > MAX_PREVIEW_LENGTH) break
    const url = await dataUrl(file, request, deps).catch((error: unknown) => {
      if (error instanceof RequestError) return null
      throw error
    })
    if (url !== null) urls.set(content_id, url)
  }
  let added = 0
  return html.replace(CID, (whole, before: string, id: string) => {
    const url = urls.get(decoded(id))
    added += url?.length ?? 0
    return url === undefined || added > 2 * MAX_PREVIEW_LENGTH ? whole : before + url
  })
}
