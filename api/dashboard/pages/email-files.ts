/**
 * What an email carries: the list on its page, each file to be saved, and inline pictures for the preview.
 * Promises: a file is only ever saved, never shown as a page of ours, whatever its type says; pictures in a preview are
 * of the email itself, and bounded; an operator's look is noted.
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
import { tableOf } from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { type PageAnswer, raw, type TeamRequest, teamPath } from '../server/page.ts'
import { TEXTS } from '../texts.ts'

/** The list; nothing without any. */
export const filesTable = ({ id, attachments }: ShownEmail, { team }: TeamRequest): Section | undefined =>
  attachments &&
  tableOf(
    attachments,
    ({ filename, content_type, size, content_id }, index) => ({
      Name: text(filename, { href: teamPath(team, 'emails', id, 'files', String(index)) }),
      Type: text(content_type),
      Size: text(byteWords(size)),
      'Inline as': text(content_id && `cid:${content_id}`),
    }),
    { title: 'Attachments', note: 'Press a name to save its file.', empty: '' },
  )

/** The attachment at a place in the list. @throws RequestError not_found */
export function fileAt({ attachments = [] }: ShownEmail, place: string): EmailFile {
  const file = /^\d{1,2}$/.test(place) ? attachments[Number(place)] : undefined
  if (!file) throw new RequestError('not_found', fill(TEXTS.noAttachment, { place }))
  return file
}

/** The bytes of a file, to be saved. @throws RequestError not_found when they have been deleted */
export async function fileAnswer(
  { team }: TeamRequest,
  { database }: PageDeps,
  { filename, size, sha256 }: EmailFile,
): Promise<PageAnswer> {
  const pieces = piecesOf(database, { team_id: team.id, sha256 })
  // Before anything is answered: it may be gone.
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
/** Where html names a part of its own email: at the start of an attribute or of a url(). */
const CID = /(["'(=]\s*)cid:([\w.@%+-]{1,400})/gi
/** How long a preview may become by its pictures: beyond it the others stay out. */
const MAX_PREVIEW_LENGTH = 12 * 1024 * 1024

const decoded = (text: string): string => percentDecoded(text) ?? text

async function dataUrl(file: EmailFile, { team }: TeamRequest, { database }: PageDeps): Promise<string> {
  const chunks: Buffer[] = []
  for await (const piece of piecesOf(database, { team_id: team.id, sha256: file.sha256 })) chunks.push(piece)
  return `data:${PICTURE.exec(file.content_type)?.[0]};base64,${Buffer.concat(chunks).toString('base64')}`
}

/** Html with the email's inline pictures in it; references to anything else, or to too much, stay as they were. */
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
