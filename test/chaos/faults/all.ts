/** Every fault, in the order in which they run. */
import type { Fault } from '../fault.ts'
import { backlogFaults } from './backlog.ts'
import { broadcastFaults } from './broadcasts.ts'
import { clockFaults } from './clocks.ts'
import { databaseFaults } from './database.ts'
import { failoverFaults } from './failover.ts'
import { fileFaults } from './files.ts'
import { limitFaults } from './limits.ts'
import { neighbourFaults } from './neighbours.ts'
import { poolerFaults } from './pooler.ts'
import { processFaults } from './processes.ts'
import { providerFaults } from './provider.ts'
import { queueFaults } from './queue.ts'
import { webhookFaults } from './webhooks.ts'
import { whenFaults } from './when.ts'

export const FAULTS: readonly Fault[] = [
  ...processFaults,
  ...databaseFaults,
  ...failoverFaults,
  ...queueFaults,
  ...backlogFaults,
  ...limitFaults,
  ...clockFaults,
  ...providerFaults,
  ...poolerFaults,
  ...neighbourFaults,
  ...broadcastFaults,
  ...fileFaults,
  ...webhookFaults,
  ...whenFaults,
]
