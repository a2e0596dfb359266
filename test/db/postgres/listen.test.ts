/** A failed LISTEN leaves no connection open. */
import { listen } from '../../../db/postgres/listen.ts'
import { testDatabase } from '../../support/database.ts'
import { startDatabaseProxy } from '../../support/database-proxy.ts'
import t from '../../support/tap.ts'
import { until } from '../../support/worker.ts'

t.test("closes a failed LISTEN's connection before the next", async (t) => {
  const proxy = await startDatabaseProxy(t, (await testDatabase(t)).url)
  const heard = () => t.fail('nothing can be heard')
  const listener = listen(proxy.url, 'no identifier', { onPayload: heard, onReconnect: heard })
  t.teardown(() => listener.close())
  for (const round of [2, 3]) {
    await until(`attempt ${round}`, () => proxy.connections().opened >= round)
    t.ok(proxy.connections().open <= 1)
  }
})
