/** Verbs of `team`: teams, their plans and allowances. */
import { Refusal } from '../errors.ts'
import { createTeam } from '../teams/create.ts'
import { subscribeTeam } from '../teams/subscribe.ts'
import { allTeams } from '../teams/teams.sql.ts'
import { showTeam } from '../teams/view.ts'
import { instant, limit, rate, uuid } from './input.ts'
import { answer, type Verbs } from './noun.ts'

type PlanOptions = {
  plan: string
  emails?: number
  contacts?: number
  whatsapp?: number
  rate?: number
  periodStart?: Date
  periodEnd?: Date
}

function periodOf({
  periodStart: start,
  periodEnd: end,
}: PlanOptions): { start: Date; end: Date } | undefined {
  if (start && end) return { start, end }
  if (!start && !end) return undefined
  throw new Refusal('bad_request', '--period-start and --period-end must be given together')
}

/** The figures that were given: what is absent stays as it is. */
function changeOf(options: PlanOptions) {
  const { plan, emails, contacts, whatsapp, rate: sends } = options
  const period = periodOf(options)
  return {
    plan,
    ...(emails === undefined ? {} : { email_limit: emails }),
    ...(contacts === undefined ? {} : { contact_limit: contacts }),
    ...(whatsapp === undefined ? {} : { whatsapp_limit: whatsapp }),
    ...(sends === undefined ? {} : { send_rate_per_second: sends }),
    ...(period === undefined ? {} : { period }),
  }
}

export const verbs: Verbs = (team, admin) => {
  team
    .command('create')
    .description('make a team')
    .requiredOption('--name <name>', 'what people call it')
    .option('--plan <key>', 'a plan of the catalog', 'free')
    .action(
      answer(
        async (options: { name: string; plan: string }) =>
          await admin.transaction((at) => createTeam(at, options)),
      ),
    )

  team
    .command('plan')
    .description('change the plan of a team, or its own limits, rate and billing period')
    .argument('<team>', 'id of the team', uuid)
    .requiredOption('--plan <key>', 'a plan of the catalog')
    .option('--emails <n>', 'emails per period, in place of the plan’s', limit)
    .option('--contacts <n>', 'stored contacts, in place of the plan’s', limit)
    .option('--whatsapp <n>', 'WhatsApp messages per period, in place of the plan’s', limit)
    .option('--rate <n>', 'emails per second, in place of the plan’s', rate)
    .option(
      '--period-start <time>',
      'start of the billing period (UTC); a free plan counts by calendar month',
      instant,
    )
    .option('--period-end <time>', 'its end: the first moment of the next one', instant)
    .addHelpText(
      'after',
      '\nA figure that is left out stays as it is. What a moved period holds is counted afresh.',
    )
    .action(
      answer(async (id: string, options: PlanOptions) => {
        const change = changeOf(options)
        return admin.transaction((at) => subscribeTeam(at, id, change))
      }),
    )

  team
    .command('list')
    .description('every team with its plan, oldest first')
    .action(answer(async () => allTeams(await admin.database())))

  team
    .command('show')
    .description('limits, what is used and left of them, send bucket, period (null: unlimited)')
    .argument('<team>', 'id of the team', uuid)
    .action(answer(async (id: string) => showTeam(await admin.database(), id)))
}
