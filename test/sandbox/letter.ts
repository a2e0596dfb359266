/** Prepares emails for the inbox: a summary for lists, and the details of one. */
import type { Address } from 'postal-mime'
import type { SandboxMessage } from './smtp.ts'

export type Summary = {
  id: string
  received_at: string
  mail_from: string
  rcpt_to: string[]
  subject: string
  from: string
  to: string[]
  message_id: string
  size: number
}

export type Details = Summary & {
  headers: { name: string; value: string }[]
  text: string
  html: string
  attachments: { filename: string; content_type: string; size: number; content_id: string | null }[]
}

const written = ({ name, address }: Address): string =>
  name === '' ? (address ?? '') : `${name} <${address ?? ''}>`

export async function summaryOf(message: SandboxMessage): Promise<Summary> {
  const { subject, from, to, messageId } = await message.parsed()
  const { id, received_at, mail_from, rcpt_to, size } = message
  return {
    id,
    received_at,
    mail_from,
    rcpt_to,
    subject: subject ?? '',
    from: from ? written(from) : '',
    to: (to ?? []).map(written),
    message_id: messageId ?? '',
    size,
  }
}

const bytesOf = (content: ArrayBuffer | Uint8Array | string): Buffer =>
  typeof content === 'string' ? Buffer.from(content) : Buffer.from(content as ArrayBuffer)

/** Returns the name and bytes of an attachment by its index. Null if it doesn't exist. */
export async function attachmentOf(message: SandboxMessage, place: number) {
  const part = (await message.parsed()).attachments[place]
  return part ? { filename: part.filename ?? 'attachment', bytes: bytesOf(part.content) } : null
}

export async function detailsOf(message: SandboxMessage): Promise<Details> {
  const { headers, text, html, attachments } = await message.parsed()
  return {
    ...(await summaryOf(message)),
    headers: headers.map(({ originalKey, value }) => ({ name: originalKey, value })),
    text: text ?? '',
    html: html ?? '',
    attachments: attachments.map(({ filename, mimeType, content, contentId }) => ({
      filename: filename ?? '',
      content_type: mimeType,
      size: bytesOf(content).length,
      content_id: contentId?.replace(/^<|>$/g, '') ?? null,
    })),
  }
}
