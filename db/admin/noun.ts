/**
 * Builds nouns and their verbs, each with a synopsis and an action that returns the value to print. To add a noun,
 * add a file here that exports `verbs`, and a line in main.ts.
 */
import type { Command } from 'commander'
import type { By } from '../accounts/audit/record.ts'
import type { Database } from '../postgres/pool.ts'
import type { Secrets } from '../process/secrets.ts'
import type { Producer } from '../queue/producer.ts'
import { escapeControls } from '../validation/strings.ts'
import type { Admin } from './context.ts'
import { emailIdentity, uuidArgument } from './input.ts'

export type Verbs = (noun: Noun) => void

/** An argument: its description in --help, and its parser. */
type Argument = readonly [about: string, read?: (text: string) => unknown]

/** Arguments with the same meaning in every synopsis. ID belongs to the noun. */
const ARGUMENTS: Readonly<Record<string, Argument>> = {
  TEAM: ['ID of the team', uuidArgument],
  EMAIL: ['the email address', emailIdentity],
  NAME: ['the domain, such as example.com'],
}

/** Ends a call with exit code 1 after its value was printed, because a check failed. */
export class Unmet extends Error {}

/**
 * Creates the action of a verb, which prints the result as JSON, with control characters escaped for the terminal.
 * `holds` returns whether a check succeeded.
 */
export const answer =
  <A extends unknown[], T>(action: (...args: A) => Promise<T>, holds: (value: T) => boolean = () => true) =>
  async (...given: unknown[]): Promise<void> => {
    const { options } = given.at(-1) as Command
    const value = await action(...(given.slice(0, options.length > 0 ? -1 : -2) as A))
    process.stdout.write(`${escapeControls(JSON.stringify(value, null, 2))}\n`)
    if (!holds(value)) throw new Unmet()
  }

/** Tools that a use case may need in addition to a transaction. They are opened before it starts. */
type Tools = { secrets: Secrets; queue: Producer }

export type Noun = ReturnType<typeof defineNoun>

/** Creates the functions that define a noun's verbs. */
export function defineNoun(noun: Command, admin: Admin) {
  const id: Argument = [`ID of the ${noun.name().split('-').at(-1)}`, uuidArgument]

  /** Adds the arguments of a synopsis: `TEAM [ID]`. @param own arguments with another meaning here. */
  const withArguments = (command: Command, names: string[], own: Record<string, Argument> = {}): Command => {
    for (const written of names) {
      const name = written.replace(/[[\]]/g, '')
      const [about, read = String] = { ID: id, ...ARGUMENTS, ...own }[name] ?? ['']
      const place = name.toLowerCase()
      command.argument(name === written ? `<${place}>` : `[${place}]`, about, read)
    }
    return command
  }

  /** Adds a verb by its synopsis, such as `show TEAM ID`. */
  const verb = (synopsis: string, about: string, own?: Record<string, Argument>): Command => {
    const [name = '', ...names] = synopsis.split(' ')
    return withArguments(noun.command(name).description(about), names, own)
  }

  const look = <A extends unknown[], T>(read: (database: Database, ...args: A) => Promise<T>) =>
    answer(async (...args: A) => read(await admin.database(), ...args))

  /** An action that runs a use case in its own transaction. */
  const change = <A extends unknown[], T, N extends keyof Tools = never>(
    useCase: (by: By & Pick<Tools, N>, ...args: A) => Promise<T>,
    ...needs: N[]
  ) =>
    answer(async (...args: A) => {
      const opened = await Promise.all(needs.map(async (need) => [need, await admin[need]()] as const))
      const tools = Object.fromEntries(opened) as Pick<Tools, N>
      return admin.transaction((by) => useCase({ ...by, ...tools }, ...args))
    })

  /** An action that reads something of a team. Fails if the team doesn't exist. */
  const ofTeam = <A extends unknown[], T>(
    read: (database: Database, team: string, ...args: A) => Promise<T>,
  ) =>
    look(async (database, team: string, ...args: A) => {
      const { requireTeam } = await import('../accounts/teams/view.ts')
      await requireTeam(database, team)
      return read(database, team, ...args)
    })

  /** Adds the verb `list TEAM`. */
  const list = <T>(about: string, rows: (database: Database, team: string) => Promise<T>): Command =>
    verb('list TEAM', about).action(ofTeam(rows))

  return { noun, admin, verb, list, look, change, ofTeam, withArguments }
}
