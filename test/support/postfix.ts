/**
 * A real Postfix for a test. It accepts email on a free port and relays everything. If it collects, it pipes
 * email to the return domain to the service's hook, with the lines in workers/PROVIDERS.md. Email to
 * arrives.test counts as delivered. The machine's own Postfix isn't read or changed. It stops and is removed
 * with the test.
 */
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './free-port.ts'
import { programMissing, runProgram } from './programs.ts'
import type { Teardown } from './smtp-sink.ts'
import { ROOT } from './sources.ts'

const ATTEMPTS = 5

export type Postfix = { port: number; url: string; log(): Promise<string> }

/** Returns why Postfix isn't available. Null if it is. */
export async function postfixMissing(): Promise<string | null> {
  if (process.platform !== 'linux') return 'Postfix runs on Linux'
  if (process.getuid?.() !== 0) return 'Postfix must be started by root'
  return (await programMissing('postfix', 'postfix')) ?? (await programMissing('curl', 'curl'))
}

/** Returns the lines for master.cf and main.cf that workers/PROVIDERS.md documents. */
async function documentedLines(): Promise<{ master: string; main: string }> {
  const text = await readFile(join(ROOT, 'workers/PROVIDERS.md'), 'utf8')
  const [, master = ''] = /```\n(heliograph unix [\s\S]*?)```/.exec(text) ?? []
  const [, main = ''] = /```\n(heliograph_destination[\s\S]*?)```/.exec(text) ?? []
  return { master, main }
}

/**
 * Returns Postfix's transport for reports. It would bounce on curl's own exit codes, so 75 makes it retry.
 */
const pipeLines = (documented: string, { token_file, hook }: { token_file: string; hook: string }): string =>
  documented
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

const mainCf = (home: string, { relay_port, milter_port }: PostfixOptions, collecting: string): string =>
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
${collecting}${milter_port ? milterCf(milter_port) : ''}`

const collectingCf = (documented: string): string =>
  documented.replace(/^transport_maps = .*$/m, '$&, inline:{ arrives.test=discard: }')

const milterCf = (port: number): string =>
  `smtpd_milters = inet:127.0.0.1:${port}
milter_default_action = tempfail
`

/** The hook for bounces. Their return addresses have a domain that starts with `bounces.`. */
type Collects = { hook: string; token: string }

type PostfixOptions = {
  /** The port of the relay that it delivers to. */
  relay_port: number
  collects?: Collects
  /** A milter that signs the email, such as OpenDKIM. */
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
  const { master, main } = await documentedLines()
  const pipes = collects ? [pipeLines(master, { token_file, hook: collects.hook })] : []
  await writeFile(join(config, 'main.cf'), mainCf(home, options, collects ? collectingCf(main) : ''))
  const log = (): Promise<string> => readFile(join(home, 'log'), 'utf8').catch(() => '')
  t.teardown(async () => {
    await runProgram('postfix', ['-c', config, 'stop']).catch(() => {})
    await rm(home, { recursive: true, force: true })
  })
  // Postfix can't pick a port itself, so a port that was free may be in use by now.
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
