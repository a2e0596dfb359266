/** What a DKIM signature protects, and what lists and relays may still add. Judged by OpenDKIM. */
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { composeMessage } from '../../../../workers/providers/mail/message.ts'
import { outgoingEmail } from '../../../support/outgoing-email.ts'
import { programMissing, runProgram } from '../../../support/programs.ts'
import t from '../../../support/tap.ts'

const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const DKIM = { domain: 'demo.test', selector: 'sel', private_key: privateKey }

const signed = async (headers: Record<string, string> | null = null): Promise<string> => {
  const pieces = await composeMessage(outgoingEmail({ dkim: DKIM, headers }))
  return Buffer.concat(pieces.map((piece) => Buffer.from(piece as string, 'latin1'))).toString('latin1')
}

t.test('h= names what it protects once more than it occurs', async (t) => {
  const plain = await signed()
  const named = (raw: string, name: string) => {
    const names = /\bh=([^;]+);/.exec(raw)?.[1]?.replace(/\s/g, '').split(':') ?? []
    return names.filter((each) => each === name).length
  }
  const counts = (raw: string, names: string) => names.split(' ').map((name) => named(raw, name))
  t.strictSame(counts(plain, 'from subject to cc reply-to'), [2, 2, 2, 1, 1])
  t.strictSame(counts(plain, 'date message-id mime-version content-type x-heliograph-ref'), [2, 2, 2, 2, 2])
  t.strictSame(counts(plain, 'list-id list-unsubscribe feedback-id sender auto-submitted list-help'), [
    ...[0, 0, 0, 0, 0, 0],
  ])
  const rich = await signed({
    'Feedback-ID': 'a:b:c:d',
    'List-Id': '<x.demo.test>',
    'List-Help': '<mailto:x@demo.test>',
  })
  t.strictSame(counts(rich, 'feedback-id list-id list-help'), [2, 2, 1])
  const [, time] = /\bt=(\d+);/.exec(plain) ?? []
  t.ok(Math.abs(Number(time) - Date.now() / 1_000) < 60)
})

const skip = (await programMissing('opendkim', 'opendkim')) ?? false

t.test('OpenDKIM rejects forged headers, and accepts those of lists', { skip }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'heliograph-dkim-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text, 'latin1')
    return join(folder, name)
  }
  const p = publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
  const keys = file('keys', `sel._domainkey.demo.test v=DKIM1; k=rsa; p=${p}\n`)
  const conf = file('opendkim.conf', `Mode v\nTestPublicKeys ${keys}\n`)
  const passes = async (raw: string): Promise<boolean> => {
    const { stdout } = await runProgram('opendkim', ['-x', conf, '-t', file('message', raw), '-vvv'])
    return /\bdkim=pass\b/.test(stdout)
  }
  const plain = await signed()
  t.ok(await passes(plain))
  for (const header of [
    'From: ceo@bank.example',
    'Subject: x',
    'To: b@c.example',
    'Cc: b@c.example',
    'Reply-To: b@c.example',
  ])
    t.notOk(await passes(`${header}\r\n${plain}`), header)
  for (const header of ['List-Id: <list.example.org>', 'List-Unsubscribe: <https://list.example.org/u>'])
    t.ok(await passes(`${header}\r\n${plain}`), header)
  const feedback = await signed({ 'Feedback-ID': 'a:b:c:d' })
  t.ok(await passes(feedback))
  t.notOk(await passes(`Feedback-ID: e:f:g:h\r\n${feedback}`), 'a second Feedback-ID')
  t.notOk(await passes(feedback.replace('a:b:c:d', 'a:b:c:e')), 'a changed Feedback-ID')
})
