/**
 * The API process: settings, pool, queue, listen, drain.
 * Promises: a missing setting stops it at once with a message naming it; SIGTERM lets requests in flight finish
 * (within 25 s) and exits 0.
 */
import { createServer, type Server } from 'node:http'
import { SettingsFault } from '../db/config.ts'
import { createLog, type Log } from '../db/log.ts'
import { createCatalog } from '../db/plans/cached.ts'
import { openDatabase } from '../db/pool.ts'
import { openProducer } from '../db/queue.ts'
import { createSecrets } from '../db/secrets.ts'
import { GRACE, stopOnSignal } from '../db/shutdown.ts'
import { createVersions } from '../db/templates/versions.ts'
import { createWaker } from '../db/wake.ts'
import { createApp } from './app.ts'
import { type ApiSettings, hookSettings, readApiSettings, snsTopics } from './config.ts'
import { createSns } from './hooks/sns.ts'

/** Opens what the API needs, and listens. */
async function start(settings: ApiSettings, log: Log) {
  const database = await openDatabase(settings.DATABASE_URL, { size: settings.DATABASE_POOL_SIZE })
  const queue = await openProducer(settings.DATABASE_URL, (error) => log.warn({ err: error }, 'queue error'))
  const app = createApp({
    database,
    queue,
    secrets: createSecrets(settings.SECRET_KEY),
    versions: createVersions(),
    catalog: createCatalog(),
    wake: createWaker(database),
    hooks: hookSettings(settings),
    sns: createSns({ topics: snsTopics(settings) }),
    log,
    clock: () => new Date(),
  })
  const server = createServer(
    { requestTimeout: 60_000, headersTimeout: 15_000, keepAliveTimeout: 65_000 },
    app.callback(),
  )
  await listenOn(server, settings.PORT)
  return { server, close: async () => await Promise.allSettled([queue.stop(), database.end()]) }
}

const listenOn = async (server: Server, port: number): Promise<void> =>
  await new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) =>
      reject(
        error.code === 'EADDRINUSE' ? new SettingsFault([`PORT ${port} is taken by another program`]) : error,
      ),
    )
    server.listen(port, () => resolve())
  })

/** Stops taking connections, waits for the requests in flight. */
async function drain(server: Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve))
  server.closeIdleConnections()
  const late = setTimeout(() => server.closeAllConnections(), GRACE)
  await closed
  clearTimeout(late)
}

async function main(): Promise<void> {
  const settings = readApiSettings()
  const log = await createLog({ name: 'api', ...settings })
  const { server, close } = await start(settings, log)
  const address = server.address()
  log.info({ port: typeof address === 'object' ? address?.port : settings.PORT }, 'listening')
  stopOnSignal(log, async () => {
    await drain(server)
    await close()
  })
}

main().catch((error: unknown) => {
  const known = error instanceof SettingsFault
  process.stderr.write(`${known ? error.message : (error as Error).stack}\n`)
  process.exit(1)
})
