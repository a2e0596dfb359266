/**
 * The form of a noun: its verbs, on a commander command, each answering with the one value that is printed.
 * To add a noun: a file beside this one that exports `verbs`, and a line in main.ts.
 */
import type { Command } from 'commander'
import type { Admin } from './context.ts'

/** Adds a noun's verbs to its command. */
export type Verbs = (noun: Command, admin: Admin) => void

/** A verb's action that prints what it resolves to, as the call's one JSON value. */
export const answer =
  <A extends unknown[]>(action: (...args: A) => Promise<unknown>) =>
  async (...args: A): Promise<void> => {
    process.stdout.write(`${JSON.stringify(await action(...args), null, 2)}\n`)
  }
