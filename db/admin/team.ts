/** Verbs of `team`: teams, their plans and quotas. */

import { type LimitColumn, limitWords, QUOTAS, type QuotaName } from '../accounts/plans/quotas.ts'
import { createTeam, USUAL_PLAN } from '../accounts/teams/create.ts'
import { renameTeam } from '../accounts/teams/rename.ts'
import { subscribeTeam } from '../accounts/teams/subscribe.ts'
import { chooseSuppressTransactional } from '../accounts/teams/suppress.ts'
import {
  SUPPRESS_TRANSACTIONAL,
  type SuppressTransactional,
} from '../accounts/teams/suppress-transactional.ts'
import { resumeTeam, suspendTeam } from '../accounts/teams/suspend.ts'
import { allTeams } from '../accounts/teams/teams.sql.ts'
import { asTest, showTeam } from '../accounts/teams/view.ts'
import { RequestError } from '../errors.ts'
import { resumeBulk } from '../messages/bulk-pause.ts'
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

/** A figure of the team's own, or the plan's. */
const orPlan =
  (figure: (text: string) => number) =>
  (text: string): number | 'plan' =>
    text === 'plan' ? 'plan' : figure(text)

const own = (figure: number | 'plan'): number | null => (figure === 'plan' ? null : figure)

function periodOf({ periodStart: start, periodEnd: end }: PlanOptions) {
  if (start && end) return { start, end }
  if (!start && !end) return undefined
  throw new RequestError('bad_request', TEXTS.periodNeedsBoth)
}

/** The figures that were given: what is absent stays as it is. @throws RequestError bad_request when none was. */
function changeOf(options: PlanOptions) {
  if (Object.keys(options).length === 0) {
    throw new RequestError('bad_request', TEXTS.noChange)
  }
  const { plan, rate: sends, storage } = options
  const period = periodOf(options)
  const limits = Object.fromEntries(
    QUOTAS.flatMap(({ name, limit }) => {
      const given = options[name]
      return given === undefined ? [] : [[limit, own(given)]]
    }),
  ) as Partial<Record<LimitColumn, number | null>>
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
    'change the plan of a team, or its own limits, rate and billing period',
  ).option('--plan <key>', 'a plan of the catalog; the one that it has when left out')
  for (const quota of QUOTAS) {
    const about = `${limitWords(quota)}, in place of the plan’s; “plan” takes it off`
    plan.option(`--${quota.name} <n>`, about, orPlan(limit))
  }
  plan
    .option('--rate <n>', 'emails per second, in place of the plan’s; “plan” takes it off', orPlan(rate))
    .option(
      '--storage <gb>',
      'gigabytes of attachments, 0 and fractions too, in place of the plan’s; “plan” takes it off',
      orPlan(amount),
    )
    .option(
      '--period-start <time>',
      'start of the billing period (UTC); a free plan counts by calendar month',
      instant,
    )
    .option('--period-end <time>', 'its end: the first moment of the next one', instant)
    .addHelpText(
      'after',
      '\nA figure that is left out stays as it is, unless the plan becomes another: then the new plan’s counts.\n' +
        'What a moved period holds is counted afresh.',
    )
    .action(
      answer(async (id: string, options: PlanOptions) => {
        const wanted = changeOf(options)
        return admin.transaction((by) => subscribeTeam(by, id, wanted))
      }),
    )
}

const TEST_TEAMS = `
What a test team sends ends in a simulator, which answers and reports by the recipient: delivered@, bounced@,
complained@, deferred@, refused@, opened@, clicked@, suppressed@ (others are delivered); numbers by their last digits, 0101 to 0107.
Its domains are verified and its WhatsApp templates approved at once. Webhooks are sent as ever. Give it the plan of
the team that it stands for (--plan): the free plan takes one email a second, five at once.`

export const verbs: Verbs = (noun) => {
  const { verb, look, change } = noun
  verb('create', 'make a team')
    .requiredOption('--name <name>', 'what people call it')
    .option('--plan <key>', 'a plan of the catalog', noun.admin.defaultPlan ?? USUAL_PLAN)
    .option('--test', 'a test team: everything as live, but nothing is delivered, for its whole life', false)
    .addHelpText('after', TEST_TEAMS)
    .action(change(createTeam))

  planVerb(noun)

  verb('rename TEAM', 'give a team another name; its id stays')
    .requiredOption('--name <name>', 'what people call it from now on')
    .action(change((by, id: string, { name }: { name: string }) => renameTeam(by, id, name)))

  verb('set TEAM', 'change a setting of a team')
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
    'refuse every credential of a team, and let its queued messages wait; nothing is deleted',
  ).action(change(suspendTeam))

  verb('resume TEAM', 'end a suspension: credentials count again, and what waits goes out').action(
    change(resumeTeam),
  )

  verb(
    'resume-bulk TEAM',
    'resume broadcasts and batch items that were paused for bounces or complaints; a new count starts',
  ).action(change((by, id: string) => resumeBulk(by, id), 'queue'))

  verb('list', 'every team with its plan, oldest first').action(
    look(async (database) =>
      (await allTeams(database)).map(({ test, ...team }) => ({ ...team, ...asTest({ test }) })),
    ),
  )

  verb(
    'show TEAM',
    'limits, which of them are the team’s own, what is used and left, send bucket, period (null: unlimited)',
  ).action(look(showTeam))
}
