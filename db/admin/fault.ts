/** Formats any failure of the CLI as one line, without stack trace, password or control characters. */
import { CommanderError } from 'commander'
import { causes, RequestError } from '../errors.ts'
import { type DatabaseAddress, readDatabaseUrl } from '../postgres/address.ts'
import { SettingsFault } from '../process/config.ts'
import { escapeControls } from '../validation/strings.ts'

const NO_VERB = 'Specify a noun and a verb, such as `team show TEAM`. --help lists them.'

const TOO_SLOW =
  'The query was cancelled after 10 seconds. Nothing was changed. Narrow it down, for example to a team, a recipient ' +
  'or fewer days.'

/** PostgreSQL's undefined_table and invalid_schema_name. */
const NOT_MIGRATED = new Set(['42P01', '3F000'])

const oneLine = (text: string): string => {
  const lines = text.split('\n').map((line) => line.trim())
  return escapeControls(lines.filter((line) => line !== '').join(' '))
}

/** The innermost message, from the driver or the server. */
function findReason(error: unknown, url: string | undefined): string {
  const said = [...causes(error)]
    .map((fault) => fault.message || String(fault.code ?? ''))
    .filter((text) => text !== '')
  return withoutPassword(said.at(-1) ?? 'no response', url)
}

/** Returns the first server of the URL, or null without a URL. */
const firstServer = (url: string | undefined): DatabaseAddress['hosts'][0] | null =>
  url ? readDatabaseUrl(url).hosts[0] : null

/** Removes the password from a message of the server. */
function withoutPassword(text: string, url: string | undefined): string {
  const password = firstServer(url)?.password
  if (typeof password !== 'string' || password === '') return text
  return text.replaceAll(encodeURIComponent(password), '***').replaceAll(password, '***')
}

function describePlace(url: string | undefined): string {
  const server = firstServer(url)
  return server ? ` at ${server.host ?? 'localhost'}:${server.port ?? 5432}` : ''
}

async function databaseFault(error: unknown, url: string | undefined): Promise<string | null> {
  if ([...causes(error)].some(({ code }) => NOT_MIGRATED.has(String(code)))) {
    return `The database${describePlace(url)} has not been migrated. Run \`node db/migrate.ts\`.`
  }
  const { databaseRejection, isDatabaseUnavailable, isTooSlow } = await import('../postgres/pool.ts')
  const refused = databaseRejection(error, describePlace(url))
  if (refused !== null) return withoutPassword(refused, url)
  if (isTooSlow(error)) return TOO_SLOW
  if (!isDatabaseUnavailable(error)) return null
  const hint = 'Start it with `npm start`, or set DATABASE_URL.'
  return `Could not reach the database${describePlace(url)}: ${findReason(error, url)}. ${hint}`
}

/** Returns the line to print on stderr. @param url the database that was used. */
export async function formatFailure(error: unknown, url: string | undefined): Promise<string> {
  if (error instanceof CommanderError) {
    return oneLine(error.code === 'commander.help' ? NO_VERB : error.message.replace(/^error: /, ''))
  }
  if (error instanceof RequestError || error instanceof SettingsFault) return oneLine(error.message)
  return oneLine((await databaseFault(error, url)) ?? `Unexpected error: ${findReason(error, url)}`)
}
