/** Names of browsers in the list of sessions. */
import { browserName } from '../../../api/dashboard/components/browser-name.ts'
import t from '../../support/tap.ts'

const EDGE =
  'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Safari/537.36 Edg/130.0.0.0'
const IPHONE =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.1 Mobile/15E148 Safari/604.1'
const PIXEL =
  'Mozilla/5.0 (Linux; Android 15; Pixel 9) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.0 Mobile Safari/537.36'
const FIREFOX = 'Mozilla/5.0 (X11; Linux x86_64; rv:132.0) Gecko/20100101 Firefox/132.0'

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
