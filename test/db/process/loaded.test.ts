/** Tests the memory of every process after its start, with its modules and garbage. */
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { testDatabase } from '../../support/database.ts'
import t from '../../support/tap.ts'
import { startProcess, until } from '../../support/worker.ts'

const TELL = new URL('../../support/tell-loaded.ts', import.meta.url).href

const ENTRIES = {
  'api/main.ts': { PORT: '0' },
  'workers/main.ts': { SMTP_URL: 'smtp://127.0.0.1:1' },
} as const

for (const [file, env] of Object.entries(ENTRIES) as [keyof typeof ENTRIES, Record<string, string>][]) {
  t.test(`${file} loads no large libraries, and returns the memory of its start when idle`, async (t) => {
    const { url: DATABASE_URL } = await testDatabase(t)
    const settings = { DATABASE_URL, NODE_OPTIONS: `--import=${TELL}`, ...env }
    const { child } = await startProcess(t, file, settings)
    child.send('what?')
    const [loaded] = (await once(child, 'message')) as [string[]]
    const has = (name: RegExp) => loaded.filter((each) => name.test(each))
    t.ok(has(/\/koa\/lib\/application\.js$|\/pg\/lib\/index\.js$/).length > 0, 'it tells of what it has')
    t.strictSame(has(/deps\/undici|NativeModule http2|handlebars\/compiler|libphonenumber|postal-mime/), [])
    if (file === 'workers/main.ts') t.strictSame(has(/mime-db/), [])
    if (file === 'api/main.ts') t.strictSame(has(/NativeModule (https|tls)$/), [], 'no TLS without its use')
    const megabytes = async (of: string): Promise<number> =>
      Number(new RegExp(`${of}:\\s+(\\d+)`).exec(await readFile(`/proc/${child.pid}/status`, 'utf8'))?.[1]) /
      1024
    await until(
      'it uses less than at its peak',
      async () => (await megabytes('VmRSS')) < (await megabytes('VmHWM')) - 8,
    )
  })
}
