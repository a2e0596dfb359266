import { appendFileSync } from 'node:fs'
import { simpleParser } from 'mailparser'
import PostalMime from 'postal-mime'
import { beginAttachments, base64 } from './support/attachments.ts'
import { signedIn } from './support/dashboard.ts'
import { startSmtpSink } from './support/smtp-sink.ts'
import { startWorker, until } from './support/worker.ts'
import t from './support/tap.ts'
const say = (x: string) => appendFileSync('/tmp/hb.log', x + '\n')
const { service, team, send } = await beginAttachments(t)
const NAMES = [' lead.pdf', 'trail.pdf ', 'a  b.pdf', '  ', ' ', '%E4.pdf', 'a%zz.pdf', '*', '"', '""', "'", ';', '=', '\'\'', "x''y", 'a;filename=evil.txt', "x; filename*=utf-8''evil.txt", '(comment)', 'a\u0301.pdf', 'e\u200bx.pdf', '\u{1f600}'.repeat(63), '"'.repeat(255), ' '.repeat(250) + 'a.pdf', 'a' + ' '.repeat(200) + 'b.pdf', 'é'.repeat(127), "é'".repeat(80), '%'.repeat(255), 'é%41.pdf', 'é*0=.pdf', 'a?b.pdf', '?=x', 'a=', 'ü ü.pdf', 'ü  ü.pdf', ' ü', 'ü ', '.', '..', '...', 'con', 'x.tar.gz', 'a,b', '<x>', '@', 'a\u00a0b.pdf', '\u00a0', '\ufeffx.pdf', '\u{e0001}x', 'a\u2028b', '=_x', 'x.eml', 'x.p7s', 'winmail.dat', 'ß'.repeat(30)+'.html', 'name*=x.pdf', 'UTF-8', "iso-8859-1'en'x", "ISO-8859-1''%E4.pdf", 'é"é\'é', 'x'.repeat(200), 'x'.repeat(78), 'x y '.repeat(60)]
t.test('names', async (t) => {
  const sink = await startSmtpSink(t)
  await startWorker(t, service, { smtp_url: sink.url })
  const owner = await signedIn(service, { team: team.id, role: 'owner' })
  for (const name of NAMES) {
    const r = await send([{ filename: name, content: base64('x' + name) }])
    if (r.status !== 201) { say(`${JSON.stringify(name)} ${r.status} ${r.body.error?.message}`); continue }
    const nfc = name.normalize('NFC')
    if (r.body.attachments[0].filename !== nfc) say(`row differs ${JSON.stringify(name)}`)
    const n = () => sink.messages().find(({ raw }) => raw.includes(r.body.id))
    await until('came', () => n() !== undefined)
    const raw = n()!.raw
    const p = await PostalMime.parse(raw)
    const m = await simpleParser(raw)
    const got = [p.attachments[0]?.filename, m.attachments[0]?.filename]
    if (p.attachments.length !== 1 || m.attachments.length !== 1) say(`COUNT ${JSON.stringify(name)} ${p.attachments.length} ${m.attachments.length}`)
    if (got[0] !== nfc || got[1] !== nfc) {
      const head = /Content-Type: [^\r]*(?:\r\n [^\r]*)*name[^\r]*(?:\r\n [^\r]*)*/i.exec(raw.toString('latin1').split('\r\n\r\n').slice(1).join('\r\n\r\n'))?.[0]
      say(`DIFF ${JSON.stringify(nfc)} postal ${JSON.stringify(got[0])} mailparser ${JSON.stringify(got[1])}\n${(head ?? '').slice(0, 300)}\n${/Content-Disposition[^]*?\r\n(?! )/i.exec(raw.toString('latin1'))?.[0].slice(0, 300)}`)
    }
    if (/[^\r\n]{999}/.test(raw.toString('latin1'))) say(`LONG LINE ${name}`)
    const d = await owner.get(`/teams/${team.id}/emails/${r.body.id}/files/0`)
    if (d.status !== 200) say(`download ${JSON.stringify(name)} ${d.status} ${d.headers.get('content-disposition')}`)
  }
})
t.test('shapes', async () => {
  for (const a of [
    [{ filename: 'a', content: '====' }], [{ filename: 'a', content: 'QQ' }], [{ filename: 'a', content: 'QQ==\n' }], [{ filename: 'a', content: 'Q\r\nQ==' }], [{ filename: 'a', content: 'QR==' }], [{ filename: 'a', content: ' QQ==' }], [{ filename: 'a', content: 'QQ==QQ==' }], [{ filename: 'a', content: '\n\n' }], [{ filename: 'a', content: ['Q'] }], [{ filename: 'a', content: { type: 'Buffer', data: [256] } }], [{ filename: 'a', content: { type: 'Buffer', data: [1.5] } }], [{ filename: 'a', content: { type: 'Buffer', data: ['1'] } }], [{ filename: 'a', content: { data: [1] } }],
    [{ filename: 'a', content: 'QQ==', content_type: 'text/plain; name="a;b"' }], [{ filename: 'a', content: 'QQ==', content_type: 'text/plain;' }], [{ filename: 'a', content: 'QQ==', content_type: 'text/plain; charset=utf-8; charset=x' }], [{ filename: 'a', content: 'QQ==', content_type: 'text/plain; boundary="x"' }], [{ filename: 'a', content: 'QQ==', content_type: 'TEXT/PLAIN' }], [{ filename: 'a', content: 'QQ==', content_type: '' }], [{ filename: 'a', content: 'QQ==', content_type: 'Multipart/x' }],
    [{ filename: 'a', content: 'QQ==', content_id: '' }], [{ filename: 'a', content: 'QQ==', content_id: 'a' }, { filename: 'b', content: 'QQ==', content_id: 'A' }], [{ filename: 'a', content: 'QQ==', content_id: '@' }], [{ filename: 'a', content: 'QQ==', content_id: '.' }],
    {}, 'x', [null], [[]], [{}], null, [],
    [{ filename: 'a.exe ', content: 'QQ==' }], [{ filename: 'a.e\u00adxe', content: 'QQ==' }], [{ filename: 'a.js.', content: 'QQ==' }],
    [{ filename: 'a', content: 'QQ==', __proto__x: 1 }],
  ]) {
    const r = await send(a)
    say(`${JSON.stringify(a).slice(0, 90)} -> ${r.status} ${r.body.error?.message ?? ''}`)
  }
})
