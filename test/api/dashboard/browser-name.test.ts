/** Names of browsers in the list of sessions. */
import { browserName } from '../../../api/dashboard/components/browser-name.ts'
import t from '../../support/tap.ts'

/** A User-Agent header, with a list of facts about the system in its comment. */
const agent = (system: readonly string[], products: string): string =>
  `Mozilla/5.0 (${system.join('; ')}) ${products}`

const CHROME = 'AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0'
const EDGE = agent(['Windows NT 10.0', 'Win64', 'x64'], `${CHROME} Safari/537.36 Edg/130.0.0.0`)
const IPHONE = agent(
  ['iPhone', 'CPU iPhone OS 18_1 like Mac OS X'],
  'AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1',
)
const PIXEL = agent(['Linux', 'Android 15', 'Pixel 9'], `${CHROME} Mobile Safari/537.36`)
const FIREFOX = agent(['X11', 'Linux x86_64', 'rv:132.0'], 'Gecko/20100101 Firefox/132.0')

t.test('a browser is named with its system, and an unknown one by its header', (t) => {
  t.strictSame([EDGE, IPHONE, PIXEL, FIREFOX, 'curl/8.11.0', 'Firefox/132.0', ''].map(browserName), [
    'Edge on Windows',
    'Safari on iOS',
    'Chrome on Android',
    'Firefox on Linux',
    'curl/8.11.0',
    'Firefox',
    '',
  ])
  t.end()
})
