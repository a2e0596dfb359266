/** Verbs of `team`: teams, their plans and quotas. */

import { describeLimit, type LimitColumn, QUOTAS, type QuotaName } from '../accounts/plans/quotas.ts'
import { createTeam, USUAL_PLAN } from '../accounts/teams/create.ts'
import { chooseSuppressTransactional, renameTeam } from '../accounts/teams/settings.ts'
import { subscribeTeam } from '../accounts/teams/subscribe.ts'
import {
  SUPPRESS_TRANSACTIONAL,
  type SuppressTransactional,
} from '../accounts/teams/suppress-transactional.ts'
import { resumeTeam, suspendTeam } from '../accounts/teams/suspend.ts'
import { allTeams } from '../accounts/teams/teams.sql.ts'
import { asTest, showTeam } from '../accounts/teams/view.ts'
import { RequestError } from '../errors.ts'
import { resumeBulk } from '../messages/bulk-pause.ts'
import { changeTeamNumber } from '../messages/whatsapp/team-number.ts'
import { amount, instant, limit, oneOf, rate } from './input.ts'
import { answer, type Verbs } from './noun.ts'
import { TEXTS } from './texts.ts'

type PlanOptions = Partial<Record<QuotaName, number | 'plan'>> & {
  plan?: string
  rate?: number | 'plan'
  storage?: number | 'plan'
  periodStart?: Date
  periodEnd?: Date
}

/** Parses a number, or `plan` for the plan's. */
const orPlan =
  (figure: (text: string) => number) =>
  (text: string): number | 'plan' =>
    text === 'plan' ? 'plan' : figure(text)

const own = (figure: number | 'plan'): number | null => (figure === 'plan' ? null : figure)

function toPeriod({ periodStart: start, periodEnd: end }: PlanOptions) {
  if (start && end) return { start, end }
  if (!start && !end) return undefined
  throw new RequestError('bad_request', TEXTS.periodNeedsBoth)
}

/** The changed limits. Absent ones don't change. @throws RequestError bad_request if nothing is given. */
function toChange(options: PlanOptions) {
  if (Object.keys(options).length === 0) {
    throw new RequestError('bad_request', TEXTS.noChange)
  }
  const { plan, rate: sends, storage } = options
  const period = toPeriod(options)
  const limits: Partial<Record<LimitColumn, number | null>> = {}
  for (const { name, limit } of QUOTAS) {
    const given = options[name]
    if (given !== undefined) limits[limit] = own(given)
  }
  return {
    plan,
    ...limits,
    ...(sends === undefined ? {} : { send_rate_per_second: own(sends) }),
    ...(storage === undefined ? {} : { storage_gb: own(storage) }),
    ...(period === undefined ? {} : { period }),
  }
}

const planVerb: Verbs = ({ verb, admin }) => {
  const plan = verb(
    'plan TEAM',
    'Change the plan of a team, or its own limits, rate and billing period',
  ).option('--plan <key>', 'a plan in the catalog (default: the current plan)')
  for (const quota of QUOTAS) {
    const about = `${describeLimit(quota)}, overrides the plan (“plan” removes the override)`
    plan.option(`--${quota.name} <n>`, about, orPlan(limit))
  }
  plan
    .option('--rate <n>', 'emails per second, overrides the plan (“plan” removes the override)', orPlan(rate))
    .option(
      '--storage <gb>',
      'gigabytes of attachments, 0 or more, overrides the plan (“plan” removes the override)',
      orPlan(amount),
    )
    .option(
      '--period-start <time>',
      'start of the billing period (UTC). Free plans always use calendar months',
      instant,
    )
    .option('--period-end <time>', 'end of the billing period: the first moment of the next one', instant)
    .addHelpText(
      'after',
      `
If the plan doesn’t change, limits you leave out are kept. If it changes, the limits of the new plan replace them.
` + 'If you change the period, usage is counted again for the new period.',
    )
    .action(
      answer(async (id: string, options: PlanOptions) => {
        const wanted = toChange(options)
        return admin.transaction((by) => subscribeTeam(by, id, wanted))
      }),
    )
}

const numberVerb: Verbs = ({ verb, change }) => {
  verb('number TEAM NAME', 'Send the WhatsApp messages of a team from another number', {
    NAME: ['a number, as `number list` shows it, or default'],
  })
    .addHelpText('after', '\nMessages already accepted keep their number.')
    .action(change((by, id: string, name: string) => changeTeamNumber(by, id, name), 'queue'))
}

const TEST_TEAMS = `
A test team sends to a simulator. The recipient decides the result. For email, it is the part before the @: delivered,
bounced, complained, deferred, refused, opened, clicked or suppressed. All other addresses are delivered. For WhatsApp,
it is the last four digits, 0101 to 0107. “Test teams” in /docs lists the results.
The team’s domains are verified and its WhatsApp templates approved immediately. Webhooks are sent as usual. Give it the
same plan as your live team (--plan). The free plan allows one email per second, with bursts of five.`

export const verbs: Verbs = (noun) => {
  const { verb, look, change } = noun
  verb('create', 'Create a team')
    .requiredOption('--name <name>', 'the name to display')
    .option('--plan <key>', 'a plan in the catalog', noun.admin.defaultPlan ?? USUAL_PLAN)
    .option('--test', 'a test team, which delivers nothing (can’t be changed later)', false)
    .addHelpText('after', TEST_TEAMS)
    .action(change(createTeam))

  planVerb(noun)
  numberVerb(noun)

  verb('rename TEAM', 'Rename a team. Its ID doesn’t change')
    .requiredOption('--name <name>', 'the new name')
    .action(change((by, id: string, { name }: { name: string }) => renameTeam(by, id, name)))

  verb('set TEAM', 'Change a setting of a team')
    .requiredOption(
      '--suppress-transactional <which>',
      `which suppressions stop transactional email: ${SUPPRESS_TRANSACTIONAL.join(', ')}`,
      oneOf(SUPPRESS_TRANSACTIONAL),
    )
    .action(
      change(
        (
          by,
          id: string,
          { suppressTransactional: which }: { suppressTransactional: SuppressTransactional },
        ) => chooseSuppressTransactional(by, id, which),
      ),
    )

  verb(
    'suspend TEAM',
    'Suspend a team. Its credentials are rejected and its messages wait. Nothing is deleted',
  ).action(change(suspendTeam))

  verb('resume TEAM', 'End a suspension. Credentials work again and waiting messages are sent').action(
    change(resumeTeam),
  )

  verb(
    'resume-bulk TEAM',
    'Resume broadcasts and batches that were paused because of bounces or complaints. Earlier emails are no longer counted',
  ).action(change((by, id: string) => resumeBulk(by, id), 'queue'))

  verb('list', 'List all teams with their plans, oldest first').action(
    look(async (database) =>
      (await allTeams(database)).map(({ test, ...team }) => ({ ...team, ...asTest({ test }) })),
    ),
  )

  verb(
    'show TEAM',
    'Show limits, overrides, usage, rate limit and period of a team. In `limits`, null means unlimited',
  ).action(look(showTeam))
}
