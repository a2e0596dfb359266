/** What handlers work with, joined of the parts that rooms ask for; made once by main.ts, passed down. Types alone. */
import type { DashboardDeps, SharedDeps } from './dashboard/server/deps.ts'
import type { DocsDeps } from './docs/drawn.ts'
import type { AllHookDeps } from './hooks/list.ts'
import type { HttpDeps } from './http/route.ts'
import type { OperationsDeps } from './operations/routes.ts'
import type { RecipientDeps } from './public/deps.ts'
import type { V1Deps } from './v1/deps.ts'

export type Deps = HttpDeps &
  V1Deps &
  AllHookDeps &
  DocsDeps &
  RecipientDeps &
  OperationsDeps &
  SharedDeps & {
    /** What the dashboard has of its own; null: it is left out. */
    dashboard: DashboardDeps | null
  }
