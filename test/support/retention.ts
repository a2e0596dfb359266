/** For how long tests have what is old kept: reports and files, as every installation has it, and else for good. */
import type { Retention } from '../../db/maintenance/retention/purge.ts'

export const KEPT: Retention = {
  ...{ reports: 30, files: 3, events: null, bodies: null, messages: null, senders: null, figures: null },
}
