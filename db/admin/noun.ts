/**
 * The builder of nouns and their verbs, each with a synopsis and an action that returns the value to print.
 * To add a noun, add a file here that exports `verbs`, and a line in main.ts. The database driver is only
 * loaded on use, so that a call takes well under a second.
 */
import type { Command } from 'commander'
import type { By } from '../accounts/audit/record.ts'
import type { Database } from '../postgres/pool.ts'
import type { Secrets } from '../process/secrets.ts'
import type { Producer } from '../queue/producer.ts'
import { escapeControls } from '../validation/strings.ts'
import type { Admin } from './context.ts'
import { emailIdentity, uuidArgument } from './input.ts'

/** Adds a noun's verbs to its command. */
export type Verbs = (noun: Noun) => void

/** An argument: what --help says of it, and its reader. */
type Argument = readonly [about: string, read?: (text: string) => unknown]

/** Those that mean the same wherever a synopsis names them; ID is the noun's own. */
const ARGUMENTS: Readonly<Record<string, Argument>> = {
  TEAM: ['ID of the team', uuidArgument],
  EMAIL: ['its address', emailIdentity],
  NAME: ['the domain, such as example.com'],
}

/** Ends a call with exit code 1 although its value was printed: what was asked about is not so. */
export class Unmet extends Error {}

/**
 * A verb's action that prints what it resolves to, as the call's one JSON value. It gets the verb's arguments, and its
 * options when the verb has any. Where that answers a question, `holds` says whether the answer is yes. What customers
 * wrote cannot drive the terminal that shows it.
 */
export const answer =
  <A extends unknown[], T>(action: (...args: A) => Promise<T>, holds: (value: T) => boolean = () => true) =>
  async (...given: unknown[]): Promise<void> => {
    const { options } = given.at(-1) as Command
    const value = await action(...(given.slice(0, options.length > 0 ? -1 : -2) as A))
    process.stdout.write(`${escapeControls(JSON.stringify(value, null, 2))}\n`)
    if (!holds(value)) throw new Unmet()
  }

/** What a use case may need beside a transaction; each is opened before that begins. */
type Tools = { secrets: Secrets; queue: Producer }

export type Noun = ReturnType<typeof nounOf>

/** What a noun's verbs are made with. */
export function nounOf(noun: Command, admin: Admin) {
  const id: Argument = [`ID of the ${noun.name().split('-').at(-1)}`, uuidArgument]

  /** Adds arguments, named as a synopsis does: `TEAM [ID]`. `own`: those that mean something else here. */
  const withArguments = (command: Command, names: string[], own: Record<string, Argument> = {}): Command => {
    for (const written of names) {
      const name = written.replace(/[[\]]/g, '')
      const [about, read = String] = { ID: id, ...ARGUMENTS, ...own }[name] ?? ['']
      const place = name.toLowerCase()
      command.argument(name === written ? `<${place}>` : `[${place}]`, about, read)
    }
    return command
  }

  /** A verb by its synopsis, such as `show TEAM ID`. */
  const verb = (synopsis: string, about: string, own?: Record<string, Argument>): Command => {
    const [name = '', ...names] = synopsis.split(' ')
    return withArguments(noun.command(name).description(about), names, own)
  }

  const look = <A extends unknown[], T>(read: (database: Database, ...args: A) => Promise<T>) =>
    answer(async (...args: A) => read(await admin.database(), ...args))

  /** An action that is a use case in a transaction of its own. */
  const change = <A extends unknown[], T, N extends keyof Tools = never>(
    useCase: (by: By & Pick<Tools, N>, ...args: A) => Promise<T>,
    ...needs: N[]
  ) =>
    answer(async (...args: A) => {
      const opened = await Promise.all(needs.map(async (need) => [need, await admin[need]()] as const))
      const tools = Object.fromEntries(opened) as Pick<Tools, N>
      return admin.transaction((by) => useCase({ ...by, ...tools }, ...args))
    })

  /** An action about what a team has, which faults on an unknown team. */
  const ofTeam = <A extends unknown[], T>(
    read: (database: Database, team: string, ...args: A) => Promise<T>,
  ) =>
    look(async (database, team: string, ...args: A) => {
      const { requireTeam } = await import('../accounts/teams/view.ts')
      await requireTeam(database, team)
      return read(database, team, ...args)
    })

  /** The verb `list TEAM`. */
  const list = <T>(about: string, rows: (database: Database, team: string) => Promise<T>): Command =>
    verb('list TEAM', about).action(ofTeam(rows))

  return { noun, admin, verb, list, look, change, ofTeam, withArguments }
}
