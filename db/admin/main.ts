/**
 * The CLI: `npm run -s admin -- NOUN VERB …`. Prints one JSON value to stdout, or one line to stderr with exit code
 * 1. A verb that checks something prints the result, and exits with 1 if the check fails. A noun's code is loaded
 * only when needed, so that a call finishes well within a second.
 */
import { enableCompileCache } from 'node:module'
import { CommanderError, createCommand } from 'commander'
import { VERSION } from '../process/version.ts'
import { type Admin, createAdmin, type Open } from './context.ts'
import { formatFailure } from './fault.ts'
import { defineNoun, Unmet, type Verbs } from './noun.ts'

type Noun = readonly [name: string, about: string, load: () => Promise<{ verbs: Verbs }>]

const NOUNS: readonly Noun[] = [
  ['team', 'teams, their plans and quotas', () => import('./team.ts')],
  ['domain', 'sending domains and their DNS records', () => import('./domain.ts')],
  ['key', 'API keys', () => import('./key.ts')],
  ['session', 'session tokens', () => import('./session.ts')],
  ['contact', 'contacts and their suppressions', () => import('./contact.ts')],
  ['suppression', 'suppressed addresses', () => import('./suppression.ts')],
  ['template', 'email templates', () => import('./template.ts')],
  ['topic', 'topics that contacts subscribe to', () => import('./topic.ts')],
  ['whatsapp', 'stored WhatsApp messages', () => import('./whatsapp.ts')],
  ['whatsapp-template', 'WhatsApp templates', () => import('./whatsapp-template.ts')],
  ['number', 'WhatsApp numbers of teams', () => import('./number.ts')],
  ['webhook', 'webhooks that receive a team’s events', () => import('./webhook.ts')],
  ['broadcast', 'one template sent to all contacts of some topics', () => import('./broadcast.ts')],
  ['plan', 'the plan catalog', () => import('./plan.ts')],
  ['email', 'stored emails', () => import('./email.ts')],
  ['report', 'delivery reports of providers', () => import('./report.ts')],
  ['login', 'a one-time link to the dashboard', () => import('./login.ts')],
  ['member', 'the members of a team', () => import('./member.ts')],
  ['audit', 'who did what, when', () => import('./audit.ts')],
  ['secret', 'keys and secrets that are encrypted with SECRET_KEY', () => import('./secret.ts')],
  ['job', 'background jobs: imports, bulk actions, redrives, erasures', () => import('./job.ts')],
  ['queue', 'job queues and dead letters', () => import('./queue.ts')],
  [
    'sender',
    'the relays, accounts and numbers that messages are sent through, and their pauses',
    () => import('./sender.ts'),
  ],
]

const WHERE = `
Prints one JSON value to stdout. Errors are printed as one line to stderr, with exit code 1.
The database is the one in DATABASE_URL, or the one \`npm start\` runs.
Run NOUN --help for a list of its verbs, and NOUN VERB --help for the options of a verb.`

/** Creates the commands. Only loads the verbs of nouns that the arguments name. */
async function createProgram(admin: Admin, args: readonly string[]) {
  const program = createCommand('npm run -s admin --')
    .usage('NOUN VERB [arguments]')
    .description('Operates Heliograph: teams, domains, keys, templates, plans, emails, reports and queues.')
    .addHelpText('after', WHERE)
    .version(VERSION, '-V, --version', 'print the version of the service')
    .exitOverride()
    .configureOutput({ writeErr: () => {} })
  for (const [name, about, load] of NOUNS) {
    const noun = program.command(name).description(about)
    if (args.includes(name)) (await load()).verbs(defineNoun(noun, admin))
  }
  return program
}

/** Runs one call, and prints its value or its error. @param open how to open the database. @returns the exit code. */
export async function main(args: readonly string[], open?: Open): Promise<number> {
  // Caches compiled code, because scripts make hundreds of calls (0.18 instead of 0.33 s of CPU per call).
  enableCompileCache()
  let admin: Admin | undefined
  try {
    admin = createAdmin(open)
    const program = await createProgram(admin, args)
    await program.parseAsync(args, { from: 'user' })
    return 0
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return 0
    if (error instanceof Unmet) return 1
    process.stderr.write(`${await formatFailure(error, admin?.url())}\n`)
    return 1
  } finally {
    await admin?.close().catch(() => {})
  }
}

if (import.meta.main) {
  // A reader that closes the pipe, such as `| head`, isn't an error.
  process.stdout.on('error', () => {})
  process.exitCode = await main(process.argv.slice(2))
}
