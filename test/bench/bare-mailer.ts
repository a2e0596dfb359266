/**
 * Sends emails with bare nodemailer, pooled and unsigned, and prints its CPU time per email in milliseconds.
 * Arguments: the port, the number of emails, and the size of each one's attachment in bytes.
 */
import { randomBytes } from 'node:crypto'
import { createTransport } from 'nodemailer'

const [port, count, bytes = 0] = process.argv.slice(2).map(Number)
const transport = createTransport({
  ...{ host: '127.0.0.1', port: port ?? 25, ignoreTLS: true, pool: true },
  maxConnections: 20,
  maxMessages: Number.POSITIVE_INFINITY,
})
const message = {
  from: 'Acme <hello@example.com>',
  to: 'someone@example.org',
  subject: 'Hello',
  html: '<p>'.padEnd(4_096, 'Hello there. '),
}

const attachments = [{ filename: 'a.bin', content: randomBytes(bytes) }]

async function send(mails: number): Promise<number> {
  const before = process.cpuUsage()
  let left = mails
  const loop = async () => {
    while (left-- > 0) await transport.sendMail(bytes > 0 ? { ...message, attachments } : message)
  }
  await Promise.all(Array.from({ length: 20 }, loop))
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1_000 / mails
}

await send(bytes > 0 ? 20 : 500)
const cost = await send(count ?? 1_000)
transport.close()
process.send?.(cost, () => process.disconnect())
