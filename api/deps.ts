/** The dependencies of handlers, combined from those of each module. main.ts creates them. Types only. */
import type { DashboardDeps, SharedDeps } from './dashboard/server/deps.ts'
import type { DocsDeps } from './docs/routes.ts'
import type { AllHookDeps } from './hooks/list.ts'
import type { HttpDeps } from './http/route.ts'
import type { OperationsDeps } from './operations/routes.ts'
import type { RecipientDeps } from './public/unsubscribe-page.ts'
import type { V1Deps } from './v1/deps.ts'

export type Deps = HttpDeps &
  V1Deps &
  AllHookDeps &
  DocsDeps &
  RecipientDeps &
  OperationsDeps &
  SharedDeps & {
    /** The dashboard's own dependencies. Null if it is disabled. */
    dashboard: DashboardDeps | null
  }
