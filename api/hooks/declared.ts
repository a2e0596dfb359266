/**
 * What a hook says of itself, in one value beside its routes: its settings, what its routes need of them. list.ts has
 * all hooks; what mounts or configures them walks over that list. Must not know any one of them.
 */
import type { ObjectShape } from 'yup'
import type { PublicRoute } from '../http/route.ts'

export type DeclaredHook = {
  settings: ObjectShape
  /** The setting without which it takes nothing. */
  switched_by: string
  /** What is wrong with its settings taken together; null when nothing is. */
  fault?(settings: never): { path: string; message: string } | null
  /** What its routes need to prove that a report is genuine; null in place of what is not configured. */
  open(settings: never): object
  routes: readonly PublicRoute<never>[]
}
