/**
 * The parts of an email that a DKIM signature protects, and the additions by lists and relays that it allows.
 * Verified by OpenDKIM.
 */
import { generateKeyPairSync } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { composeMessage } from '../../../../workers/providers/mail/message.ts'
import type { OutgoingEmail } from '../../../../workers/providers/provider.ts'
import { outgoingEmail } from '../../../support/outgoing-email.ts'
import { programMissing, runProgram } from '../../../support/programs.ts'
import t, { type Test } from '../../../support/tap.ts'

const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
const DKIM = { domain: 'demo.test', selector: 'sel', private_key: privateKey }

const signed = async (
  headers: Record<string, string> | null = null,
  changes: Partial<OutgoingEmail> = {},
): Promise<string> => {
  const pieces = await composeMessage(outgoingEmail({ dkim: DKIM, headers, ...changes }))
  return Buffer.concat(pieces.map((piece) => Buffer.from(piece as string, 'latin1'))).toString('latin1')
}

t.test('h= names protected headers once more than they occur', async (t) => {
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

/** Verifies messages with OpenDKIM, for which DNS only has these records. */
function openDkim(t: Test, records: readonly string[]): (raw: string) => Promise<boolean> {
  const folder = mkdtempSync(join(tmpdir(), 'heliograph-dkim-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text, 'latin1')
    return join(folder, name)
  }
  const keys = file('keys', records.map((record) => `${record}\n`).join(''))
  const conf = file('opendkim.conf', `Mode v\nTestPublicKeys ${keys}\n`)
  return async (raw) => {
    const { stdout } = await runProgram('opendkim', ['-x', conf, '-t', file('message', raw), '-vvv'])
    return /\bdkim=pass\b/.test(stdout)
  }
}

t.test('Ed25519 and RSA signatures each verify independently', { skip }, async (t) => {
  const second = generateKeyPairSync('ed25519')
  const ed25519 = { domain: 'demo.test', selector: 'ed', private_key: second.privateKey }
  const raw = await signed(null, { ed25519 })
  t.strictSame(raw.match(/\ba=[a-z0-9-]+;/g), ['a=rsa-sha256;', 'a=ed25519-sha256;'])
  const record = (selector: string, type: string, key: Buffer) =>
    `${selector}._domainkey.demo.test v=DKIM1; k=${type}; p=${key.toString('base64')}`
  const rsa = record('sel', 'rsa', publicKey.export({ type: 'spki', format: 'der' }))
  const own = record('ed', 'ed25519', second.publicKey.export({ type: 'spki', format: 'der' }).subarray(12))
  for (const records of [[rsa], [own], [rsa, own]]) t.ok(await openDkim(t, records)(raw))
  t.notOk(await openDkim(t, [own])(raw.replace('Subject: Hello', 'Subject: Hallo')))
})

t.test('OpenDKIM rejects forged headers, and accepts those of lists', { skip }, async (t) => {
  const p = publicKey.export({ type: 'spki', format: 'der' }).toString('base64')
  const passes = openDkim(t, [`sel._domainkey.demo.test v=DKIM1; k=rsa; p=${p}`])
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

t.test('broadcasts with their own return path have a complaint address', async (t) => {
  const paths = { return_path: 'b-1@bounces.demo.test', shared_return_path: 'b-1@bounces.example.net' }
  const raw = await signed(null, { ...paths, is_broadcast: true })
  t.match(raw, /^CFBL-Address: fbl@bounces\.demo\.test\r$/m)
  t.match(raw, /^CFBL-Feedback-ID: b-0{62}\r$/m)
  const names = /\bh=([^;]+);/.exec(raw)?.[1]?.replace(/\s/g, '').split(':') ?? []
  for (const name of ['cfbl-address', 'cfbl-feedback-id', 'x-heliograph-ref'])
    t.equal(names.filter((each) => each === name).length, 2, name)
  t.notMatch(await signed(null, paths), /^CFBL-/m)
  t.notMatch(await signed(null, { is_broadcast: true }), /^CFBL-/m)
})

t.test('every email carries its signed reference', async (t) => {
  t.match(await signed(), /^X-Heliograph-Ref: b-0{62}\r$/m)
})
