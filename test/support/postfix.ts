/**
 * A real Postfix for a test. It accepts email on a free port and relays everything. If it collects, it pipes
 * email to the return domain to the service's hook, with the lines of workers/PROVIDERS.md. Email to
 * arrives.test counts as delivered. The machine's own Postfix isn't read or changed. It stops and is removed
 * with the test.
 */
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './free-port.ts'
import { programMissing, runProgram } from './programs.ts'
import type { Teardown } from './smtp-sink.ts'

const ATTEMPTS = 5

export type Postfix = { port: number; url: string; log(): Promise<string> }

/** Returns why Postfix isn't available. Null if it is. */
export async function postfixMissing(): Promise<string | null> {
  if (process.platform !== 'linux') return 'Postfix runs on Linux'
  if (process.getuid?.() !== 0) return 'Postfix must be started by root'
  return (await programMissing('postfix', 'postfix')) ?? (await programMissing('curl', 'curl'))
}

const PROVIDERS = join(import.meta.dirname, '../../workers/PROVIDERS.md')

/** Returns the documented block of Postfix lines with this start. */
async function documented(start: string): Promise<string> {
  const [, block] = (await readFile(PROVIDERS, 'utf8')).split(`\n\`\`\`\n${start}`)
  if (block === undefined) throw new Error(`PROVIDERS.md has no lines that start with ${start}`)
  return `${start}${block.slice(0, block.indexOf('\n```'))}`
}

/** Returns Postfix's transport for reports. */
const pipeLines = async (token_file: string, hook: string): Promise<string> =>
  (await documented('heliograph unix'))
    .replace('/etc/postfix/heliograph-token', token_file)
    .replace('https://heliograph.example.com/hooks/smtp', hook)

const service = (name: string, program: string): string => `${name} unix - - n - 0 ${program}`

const masterCf = (port: number, pipes: string[]): string =>
  [
    `127.0.0.1:${port} inet n - n - - smtpd`,
    ...['rewrite:trivial-rewrite', 'bounce', 'defer:bounce', 'trace:bounce', 'smtp', 'error', 'discard']
      .map((pair) => pair.split(':'))
      .map(([name = '', program = name]) => service(name, program)),
    'cleanup unix n - n - 0 cleanup',
    'qmgr unix n - n 300 1 qmgr',
    'retry unix - - n - - error',
    'proxymap unix - - n - - proxymap',
    'anvil unix - - n - 1 anvil',
    'scache unix - - n - 1 scache',
    'postlog unix-dgram n - n - 1 postlogd',
    ...pipes,
    '',
  ].join('\n')

const mainCf = async (home: string, { relay_port, collects, milter_port }: PostfixOptions): Promise<string> =>
  `compatibility_level = 3.6
queue_directory = ${home}/queue
data_directory = ${home}/data
maillog_file = ${home}/log
maillog_file_prefixes = ${home}
myhostname = postfix.test
mydestination =
mynetworks = 127.0.0.0/8
inet_interfaces = loopback-only
inet_protocols = ipv4
alias_maps =
local_recipient_maps =
disable_dns_lookups = yes
default_transport = smtp:[127.0.0.1]:${relay_port}
${collects ? await collectingCf(collects) : ''}${milter_port ? milterCf(milter_port) : ''}`

const collectingCf = async ({ return_domain }: Collects): Promise<string> =>
  `${(await documented('heliograph_destination'))
    .replace('bounces.example.com', return_domain)
    .replace('transport_maps =', 'transport_maps = inline:{ arrives.test=discard: },')}
`

const milterCf = (port: number): string =>
  `smtpd_milters = inet:127.0.0.1:${port}
milter_default_action = tempfail
`

/** The domain that bounces return to, and the hook that they go to. */
type Collects = { return_domain: string; hook: string; token: string }

type PostfixOptions = {
  /** Where it delivers to. */
  relay_port: number
  collects?: Collects
  /** What signs the mail on its way, such as OpenDKIM. */
  milter_port?: number | undefined
}

/** Starts one. @throws Error with Postfix's message if it can't. */
export async function startPostfix(t: Teardown, options: PostfixOptions): Promise<Postfix> {
  const home = await mkdtemp(join(tmpdir(), 'postfix-'))
  // Its daemons run as separate users.
  await chmod(home, 0o755)
  const [config, token_file] = [join(home, 'etc'), join(home, 'token')]
  for (const name of ['etc', 'queue', 'data']) await mkdir(join(home, name), { mode: 0o755 })
  await runProgram('chown', ['postfix', join(home, 'data')])
  const { collects } = options
  await writeFile(token_file, `Authorization: Bearer ${collects?.token}\n`)
  const pipes = collects ? [await pipeLines(token_file, collects.hook)] : []
  await writeFile(join(config, 'main.cf'), await mainCf(home, options))
  const log = (): Promise<string> => readFile(join(home, 'log'), 'utf8').catch(() => '')
  t.teardown(async () => {
    await runProgram('postfix', ['-c', config, 'stop']).catch(() => {})
    await rm(home, { recursive: true, force: true })
  })
  // Postfix accepts no port 0, so a port that was free may be in use by now.
  for (let attempt = 1; ; attempt++) {
    const port = await freePort()
    await writeFile(join(config, 'master.cf'), masterCf(port, pipes))
    try {
      await runProgram('postfix', ['-c', config, 'start'])
      return { port, url: `smtp://127.0.0.1:${port}`, log }
    } catch (error) {
      const said = await log()
      if (attempt < ATTEMPTS && said.includes('Address already in use')) continue
      throw new Error(`${error instanceof Error ? error.message : ''}\n${said}`)
    }
  }
}
