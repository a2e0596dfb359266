/** Any input as a report is parsed in bounded time, and the result can be stored. */
import fc from 'fast-check'
import { deliveryStatus } from '../../../sandbox/reports.ts'
import { at, mail_from, raw, readBytes, report } from '../../../support/mail-reports.ts'
import t from '../../../support/tap.ts'

t.test('address fields cost next to nothing, whatever they contain', async (t) => {
  const bounce = deliveryStatus({ mail_from, raw, at }, [
    { recipient: 'ana@example.org', action: 'failed', status: '5.1.1', diagnostic: '550 5.1.1 x' },
  ])
  /** Returns the least of three runs, in microseconds. The first one loads the parser. */
  const costOf = async (field: string): Promise<number> => {
    const costs: number[] = []
    while (costs.length < 3) {
      const before = process.cpuUsage()
      t.match(await readBytes(Buffer.concat([Buffer.from(field), bounce])), [{ kind: 'bounced' }])
      costs.push(process.cpuUsage(before).user)
    }
    return Math.min(...costs)
  }
  const harmless = await costOf(`X-Cc: ${'a:'.repeat(100_000)}\r\n`)
  for (const name of ['From', 'Cc ', 'to'])
    t.ok((await costOf(`${name}: ${'a:'.repeat(100_000)}\r\n`)) < 10 * harmless + 100_000, name)
})

t.test('hostile bytes cost bounded time, with storable results', async (t) => {
  const template = deliveryStatus({ mail_from, raw, at }, [
    { recipient: 'ana@example.org', action: 'failed', status: '5.1.1', diagnostic: '550 5.1.1 x' },
  ])
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(template.length - 1), fc.nat(255)), { maxLength: 30 }),
      async (changes) => {
        const body = Buffer.from(template)
        for (const [index, byte] of changes) body[index] = byte
        const events = await readBytes(body).catch((error: unknown) => error)
        if (!Array.isArray(events)) return events instanceof Error
        const text = JSON.stringify(events)
        return !/\\u0000|\\ud[89a-f]/i.test(text) && text.length < 5_000
      },
    ),
    { numRuns: 500 },
  )
  // With worse than linear time they would exceed tap's own limit.
  const heavy = [
    report(mail_from, `x: y\r\n\r\nAction: failed\r\nFinal-Recipient: rfc822;${'a'.repeat(900_000)}\r\n`),
    report(mail_from, `x: y\r\n\r\nAction: failed\r\nDiagnostic-Code: ${'; '.repeat(400_000)}\r\n`),
    report(mail_from, `x: y\r\n\r\nAction: failed\r\nStatus: ${'5.1.'.repeat(200_000)}\r\n`),
    report(mail_from, `x: y\r\n\r\nAction: failed\r\nLast-Attempt-Date: ${'('.repeat(900_000)}\r\n`),
    report(mail_from, ` ${'\t '.repeat(400_000)}\r\n`.repeat(1)),
    `To: ${'b-'.repeat(100_000)}\r\n\r\n`,
    Buffer.alloc(10 * 1024 * 1024, 'x\n'),
    `A: b\r\n\r\n${'\n'.repeat(10_000_000)}`,
    report(mail_from, 'A: b\r\n'.repeat(1_000_000)),
    report(mail_from, `Feedback-Type: ${'x'.repeat(400_000)}\r\n`, 'message/feedback-report'),
  ]
  for (const body of heavy) {
    const events = await readBytes(body).catch(() => [])
    t.ok(JSON.stringify(events).length < 5_000)
  }
  const [event] = await readBytes(
    report(
      mail_from,
      'x: y\r\n\r\nAction: failed\r\nFinal-Recipient: rfc822;a\0b@c.dd\r\nDiagnostic-Code: smtp;550 a\0b\r\n',
    ),
  )
  t.notMatch(JSON.stringify(event), /\\u0000/)
})
