/**
 * The CLI: `npm run -s admin -- NOUN VERB …`.
 * Promises: one JSON value on stdout, or one line on stderr and exit code 1; a verb that asks whether something is so
 * prints its value and exits with 1 when it is not; a noun's code is loaded only when it is named, so that a call
 * stays well under a second.
 * To add a noun: a file under db/admin/ and a line in NOUNS.
 */
import { enableCompileCache } from 'node:module'
import { CommanderError, createCommand } from 'commander'
import { VERSION } from '../process/version.ts'
import { type Admin, createAdmin } from './context.ts'
import { faultLine } from './fault.ts'
import { nounOf, Unmet, type Verbs } from './noun.ts'

type Noun = { name: string; about: string; load: () => Promise<{ verbs: Verbs }> }

const NOUNS: readonly Noun[] = [
  { name: 'team', about: 'teams, their plans and quotas', load: () => import('./team.ts') },
  { name: 'domain', about: 'sending domains and their DNS records', load: () => import('./domain.ts') },
  { name: 'key', about: 'API keys', load: () => import('./key.ts') },
  { name: 'session', about: 'session tokens', load: () => import('./session.ts') },
  { name: 'contact', about: 'contacts and what suppresses them', load: () => import('./contact.ts') },
  { name: 'template', about: 'email templates', load: () => import('./template.ts') },
  { name: 'topic', about: 'topics that contacts subscribe to', load: () => import('./topic.ts') },
  { name: 'whatsapp', about: 'stored WhatsApp messages', load: () => import('./whatsapp.ts') },
  { name: 'whatsapp-template', about: 'WhatsApp templates', load: () => import('./whatsapp-template.ts') },
  { name: 'webhook', about: 'servers of teams that get their events', load: () => import('./webhook.ts') },
  {
    name: 'broadcast',
    about: 'one template to all contacts of some topics',
    load: () => import('./broadcast.ts'),
  },
  { name: 'plan', about: 'the plan catalog', load: () => import('./plan.ts') },
  { name: 'email', about: 'stored emails', load: () => import('./email.ts') },
  { name: 'report', about: 'what providers have reported', load: () => import('./report.ts') },
  { name: 'login', about: 'a one-time link to the dashboard', load: () => import('./login.ts') },
  { name: 'member', about: 'the people of a team', load: () => import('./member.ts') },
  { name: 'audit', about: 'who did what, when', load: () => import('./audit.ts') },
  { name: 'secret', about: 'what SECRET_KEY protects', load: () => import('./secret.ts') },
  {
    name: 'work',
    about: 'background jobs: imports, bulk actions, redrives, erasures',
    load: () => import('./work.ts'),
  },
  { name: 'queue', about: 'job queues and dead letters', load: () => import('./queue.ts') },
  { name: 'sender', about: 'what we send through, and its pauses', load: () => import('./sender.ts') },
]

const WHERE = `
Answers with one JSON value on stdout; faults are one line on stderr, with exit code 1.
The database is DATABASE_URL's, else the one that \`npm start\` keeps running.
NOUN --help lists its verbs, NOUN VERB --help a verb's flags.`

/** The commands, with the verbs of those nouns that the arguments name. */
async function createProgram(admin: Admin, args: readonly string[]) {
  const program = createCommand('npm run -s admin --')
    .usage('NOUN VERB [arguments]')
    .description('Operates Heliograph: teams, domains, keys, templates, plans, emails, reports and queues.')
    .addHelpText('after', WHERE)
    .version(VERSION, '-V, --version', 'print the version of the service')
    .exitOverride()
    .configureOutput({ writeErr: () => {} })
  for (const { name, about, load } of NOUNS) {
    const noun = program.command(name).description(about)
    if (args.includes(name)) (await load()).verbs(nounOf(noun, admin))
  }
  return program
}

/** Runs one call, which prints its value or its fault. @returns the exit code. */
export async function main(args: readonly string[]): Promise<number> {
  // Scripts make hundreds of calls: compiled code is kept between them (measured: 0.18 s of CPU a call, not 0.33 s).
  enableCompileCache()
  let admin: Admin | undefined
  try {
    admin = createAdmin()
    const program = await createProgram(admin, args)
    await program.parseAsync(args, { from: 'user' })
    return 0
  } catch (error) {
    if (error instanceof CommanderError && error.exitCode === 0) return 0
    if (error instanceof Unmet) return 1
    process.stderr.write(`${await faultLine(error, admin?.url())}\n`)
    return 1
  } finally {
    await admin?.close().catch(() => {})
  }
}

if (import.meta.main) {
  // A reader that has gone, such as `| head`, is no fault of ours.
  process.stdout.on('error', () => {})
  process.exitCode = await main(process.argv.slice(2))
}
