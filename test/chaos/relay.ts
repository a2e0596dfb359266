/**
 * The receiving relay: an SMTP server that counts each message's copies and can misbehave. A copy is counted
 * before the response, so that a killed worker can't have a response that isn't counted. `answered` is true
 * if its 250 was written to an open connection.
 */
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { reset } from '../support/reset.ts'

export type Step = 'banner' | 'mail' | 'rcpt' | 'dot'
/** A reply, or another reaction. */
export type Answer = 'drop' | 'reset' | 'hang' | 'endless' | (string & {})
/**
 * Returns the reply to a step. Undefined means a normal reply. `line` is the command, or at the final dot the
 * message's id.
 */
export type Manners = (step: Step, line: string) => Answer | undefined | Promise<Answer | undefined>

export type Copy = {
  /** When the sender started it, and when it had arrived completely, in milliseconds since 1970. */
  began: number
  at: number
  answered: boolean
  /** The sender's name in EHLO. */
  by: string
}

export type Relay = {
  port: number
  /** The complete, unrejected copies of each message, by the id of its row. */
  copies: Map<string, Copy[]>
  manners(manners: Manners): void
  close(): Promise<void>
}

const POLITE: Manners = () => undefined
const PROPER: Record<Step, string> = {
  banner: '220 chaos.test ESMTP',
  mail: '250 OK',
  rcpt: '250 OK',
  dot: '250 2.0.0 taken',
}
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/

const idOf = (message: string): string =>
  UUID.exec(/^message-id:.*$/im.exec(message)?.[0] ?? '')?.[0] ?? 'without an id'

/** Starts it on a free port. */
export async function startRelay(): Promise<Relay> {
  const copies = new Map<string, Copy[]>()
  const sockets = new Set<Socket>()
  let manners = POLITE
  const server = createServer({ noDelay: true }, (socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).on('close', () => sockets.delete(socket))
    converse(socket, {
      answer: (step, line) => manners(step, line),
      taken(message, sender) {
        const id = idOf(message)
        const copy = { ...sender, at: Date.now(), answered: false }
        copies.set(id, [...(copies.get(id) ?? []), copy])
        const refuse = (): void => {
          const others = (copies.get(id) ?? []).filter((other) => other !== copy)
          if (others.length > 0) copies.set(id, others)
          else copies.delete(id)
        }
        return { id, copy, refuse }
      },
    })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    copies,
    manners: (given) => {
      manners = given
    },
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      for (const socket of sockets) socket.destroy()
      await closed
    },
  }
}

type Desk = {
  answer: Manners
  taken(message: string, sender: Pick<Copy, 'began' | 'by'>): { id: string; copy: Copy; refuse(): void }
}

/** @returns true if a positive reply was written to an open connection. */
async function say(socket: Socket, reply: Answer): Promise<boolean> {
  if (reply === 'hang') await sleep(3_600_000, undefined, { ref: false })
  if (reply === 'endless') await babble(socket)
  else if (reply === 'drop') socket.end()
  else if (reply === 'reset') reset(socket)
  else if (socket.writable) {
    socket.write(`${reply}\r\n`)
    return !/^[45]/.test(reply)
  }
  return false
}

/** Writes an endless line until the client disconnects. */
async function babble(socket: Socket): Promise<void> {
  const words = Buffer.alloc(64 * 1024, 'x')
  while (socket.writable) {
    if (!socket.write(words))
      await Promise.race([once(socket, 'drain'), once(socket, 'close')]).catch(() => {})
  }
}

/** Serves one connection. */
function converse(socket: Socket, { answer, taken }: Desk): void {
  let pending = ''
  let inMessage = false
  const sender = { began: 0, by: '' }
  const step = async (name: Step, line: string) => say(socket, (await answer(name, line)) ?? PROPER[name])
  const hear = async (line: string): Promise<void> => {
    const verb = line.slice(0, 4).toUpperCase()
    if (verb === 'EHLO') {
      sender.by = line.slice(5)
      await say(socket, '250-chaos.test\r\n250 8BITMIME')
    } else if (verb === 'MAIL') {
      sender.began = Date.now()
      await step('mail', line)
    } else if (verb === 'RCPT') await step('rcpt', line)
    else if (verb === 'QUIT') await say(socket, '221 bye').then(() => socket.end())
    else if (verb === 'DATA') inMessage = await say(socket, '354 go on')
    else await say(socket, '250 OK')
  }
  const take = async (message: string): Promise<void> => {
    inMessage = false
    const { id, copy, refuse } = taken(message, sender)
    const reply = (await answer('dot', id)) ?? PROPER.dot
    if (/^[45]/.test(reply)) refuse()
    copy.answered = (await say(socket, reply)) && !socket.destroyed
  }
  const drain = async (): Promise<void> => {
    for (;;) {
      const mark = inMessage ? '\r\n.\r\n' : '\r\n'
      const end = pending.indexOf(mark)
      if (end < 0) return
      const heard = pending.slice(0, end)
      pending = pending.slice(end + mark.length)
      await (inMessage ? take(heard) : hear(heard))
    }
  }
  let last = step('banner', '').then(() => {})
  socket.on('data', (chunk) => {
    pending += chunk.toString('latin1')
    last = last.then(drain)
  })
}
