/** The retention of tests: reports and files as in every installation, everything else forever. */
import type { Retention } from '../../db/maintenance/retention/purge.ts'

export const KEPT: Retention = {
  ...{ reports: 30, files: 3, events: null, bodies: null, messages: null, senders: null, figures: null },
}
