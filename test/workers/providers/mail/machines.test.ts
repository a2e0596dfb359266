/** Which user agents are machines. */
import { isMachine } from '../../../../workers/providers/mail/machines.ts'
import t from '../../../support/tap.ts'

t.test("Apple’s proxy and scanners are machines, browsers aren't", async (t) => {
  for (const agent of [
    'Mozilla/5.0',
    ' Mozilla/5.0 ',
    'Mozilla/5.0 (compatible; Barracuda Sentinel (EE))',
    'curl/8.5.0',
  ])
    t.ok(isMachine(agent), agent)
  for (const agent of [
    '',
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X)',
    'Outlook-iOS/2.0',
    'Mozilla/5.01',
  ])
    t.notOk(isMachine(agent), agent)
})
