/** The retention periods of tests: the defaults for reports and files, and no limit for everything else. */
import type { Retention } from '../../db/maintenance/retention/purge.ts'

export const KEPT: Retention = {
  ...{ reports: 30, files: 3, events: null, bodies: null, messages: null, senders: null, figures: null },
}
