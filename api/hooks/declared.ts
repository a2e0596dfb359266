/**
 * The declaration of a hook: settings, routes and dependencies. list.ts lists all hooks, for the code that
 * mounts or configures them.
 */
import type { ObjectShape } from 'yup'
import type { PublicRoute } from '../http/route.ts'

export type DeclaredHook = {
  settings: ObjectShape
  /** The setting that enables the hook. */
  switched_by: string
  /** Returns the error in the combination of its settings, or null. */
  fault?(settings: never): { path: string; message: string } | null
  /** Creates the dependencies that verify reports. A value is null if it isn't configured. */
  open(settings: never): object
  routes: readonly PublicRoute<never>[]
}
