/**
 * The form of a noun: its verbs, on a commander command, each answering with the one value that is printed.
 * To add a noun: a file beside this one that exports `verbs`, and a line in main.ts.
 */
import type { Command } from 'commander'
import { escapeControls } from '../text/strings.ts'
import type { Admin } from './context.ts'

/** Adds a noun's verbs to its command. */
export type Verbs = (noun: Command, admin: Admin) => void

/** Ends a call with exit code 1 although its value was printed: what was asked about is not so. */
export class Unmet extends Error {}

/**
 * A verb's action that prints what it resolves to, as the call's one JSON value. Where that answers a question,
 * `holds` says whether the answer is yes. What customers wrote cannot drive the terminal that shows it.
 */
export const answer =
  <A extends unknown[], T>(action: (...args: A) => Promise<T>, holds: (value: T) => boolean = () => true) =>
  async (...args: A): Promise<void> => {
    const value = await action(...args)
    process.stdout.write(`${escapeControls(JSON.stringify(value, null, 2))}\n`)
    if (!holds(value)) throw new Unmet()
  }
