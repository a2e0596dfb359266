/** ETags of responses, which clients send back to get only a changed response. Pure. */
import { createHash } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

export const etagOf = (body: string): string => `"${createHash('sha256').update(body).digest('base64url')}"`

/** True if the client already has the response with this ETag. */
export const isKnown = (headers: IncomingHttpHeaders, etag: string): boolean =>
  (headers['if-none-match'] ?? '').split(',').some((tag) => [etag, `W/${etag}`, '*'].includes(tag.trim()))
