/** Lists WhatsApp numbers, the default one first, with Meta's data. Adds, checks, changes, pauses and removes them. */

import type { By } from '../../../../db/accounts/audit/record.ts'
import { invalidField } from '../../../../db/errors.ts'
import {
  addNumber,
  checkNumber,
  type NumberTools,
  pauseNumber,
  removeNumber,
  resumeNumber,
  setNumber,
  showNumber,
} from '../../../../db/messages/whatsapp/manage-numbers.ts'
import { WEBHOOK_FIELDS } from '../../../../db/messages/whatsapp/number-hook.ts'
import {
  allNumbers,
  defaultNumber,
  useOfNumber,
  type WhatsappNumber,
} from '../../../../db/messages/whatsapp/numbers.sql.ts'
import { plural } from '../../../../db/plural.ts'
import { type Cell, number, text, time } from '../../components/cell.ts'
import type { Alert, Field, Form, Section } from '../../components/section.ts'
import { asActor } from '../../server/action.ts'
import {
  action,
  buildAlerts,
  buildFacts,
  buildForm,
  button,
  compact,
  field,
  get,
  hidden,
  post,
} from '../../server/builders.ts'
import type { PageDeps } from '../../server/deps.ts'
import { type PersonRequest, redirect, show } from '../../server/page.ts'
import { NO_DEFAULT_NUMBER } from '../whatsapp-default-number.ts'
import {
  attemptCell,
  limitCell,
  numberPath,
  numberPauseAlert,
  numberState,
  numbersTable,
  NUMBERS_PATH as PATH,
  qualityCell,
  readNumberFacts,
} from './whatsapp-number-table.ts'

/** Returns the dependencies of number use cases, with the user of the request. */
const createTools = (request: PersonRequest, deps: PageDeps): NumberTools => ({
  run: (work) => asActor(request, deps, work),
  secrets: deps.secrets,
  url: deps.graphApi,
  site: deps.publicUrl,
})

/** Builds a field for a secret, which isn't shown again after an error. */
const secretField = (name: string, label: string, more: Partial<Field> = {}): Field =>
  field(name, label, { own: true, ...more })

const SUBSCRIBE: Field = field('subscribe', 'Events', {
  type: 'checks',
  options: [{ value: 'yes', label: 'Subscribe the token’s app to the account if needed' }],
})

const RATE = { type: 'number', hint: '80 unless Meta has raised it' } as const

function readRate(form: URLSearchParams): number | undefined {
  const typed = form.get('messages_per_second')?.trim() ?? ''
  if (typed === '') return undefined
  if (/^\d+$/.test(typed)) return Number(typed)
  throw invalidField('messages_per_second', 'must be a whole number from 1 to 10000')
}

const typed = (form: URLSearchParams, name: string): string | undefined => form.get(name)?.trim() || undefined

const list = get('operator', PATH, async ({ now }, { database }) => {
  const preset = await defaultNumber(database)
  const numbers = compact([preset, ...(await allNumbers(database))])
  return show({
    title: 'WhatsApp numbers',
    lead:
      numbers.length > 0
        ? 'Teams without their own number use the default number in the workers’ settings.'
        : undefined,
    sections: [
      ...buildAlerts([preset === null && NO_DEFAULT_NUMBER]),
      numbersTable(numbers, await readNumberFacts(database, now)),
      buildForm(PATH, 'Add number', {
        title: 'Add a number',
        note: 'The number is checked with Meta first. Nothing is stored if Meta rejects the token.',
        folded: true,
        fields: [
          field('name', 'Name', { required: true, hint: 'a-z, 0-9 and -. It can’t be changed later.' }),
          field('phone_number_id', 'Phone number ID', { required: true }),
          field('account_id', 'WhatsApp Business Account ID', { required: true }),
          secretField('token', 'Access token', { required: true }),
          secretField('app_secret', 'App secret', {
            hint: 'Only needed if this number’s events don’t come from the Meta app of WHATSAPP_APP_SECRET.',
          }),
          field('messages_per_second', 'Messages per second', RATE),
          SUBSCRIBE,
        ],
      }),
    ],
  })
})

const add = post('operator', PATH, async (request, deps) => {
  const { form } = request
  const given = {
    ...{ name: form.get('name')?.trim() ?? '', phone_number_id: form.get('phone_number_id')?.trim() ?? '' },
    ...{ account_id: form.get('account_id')?.trim() ?? '', token: form.get('token')?.trim() ?? '' },
    ...{ app_secret: typed(form, 'app_secret'), messages_per_second: readRate(form) },
  }
  const added = await addNumber(createTools(request, deps), given, {
    subscribe: form.get('subscribe') === 'yes',
  })
  return redirect(numberPath(added.name), `The number ${added.name} was added. ${missingWords(added)}`)
})

const missingWords = ({ missing }: Pick<WhatsappNumber, 'missing'>): string =>
  missing.length === 0 ? 'Nothing is missing.' : `${plural(missing.length, 'step')} to do.`

type NumberDetail = Awaited<ReturnType<typeof showNumber>>

/** Builds the alerts for missing steps. Without the app's subscription, Meta sends no events. */
const missingAlerts = ({ missing, subscribed }: NumberDetail): Alert[] =>
  missing.map((title, index) => ({
    tone: 'warn',
    title,
    text:
      index === missing.length - 1 && subscribed === false
        ? 'Until the app is subscribed, Meta reports no deliveries or replies of this number.'
        : undefined,
  }))

const metaFacts = (shown: NumberDetail, now: Date): Section =>
  buildFacts(
    {
      Quality: qualityCell(shown.quality),
      'Messaging limit': limitCell(shown.messaging_limit),
      'App subscribed': text(shown.subscribed === null ? null : shown.subscribed ? 'yes' : 'no'),
      'Last check': time(shown.checked_at, now),
    },
    { title: 'Data from Meta' },
  )

const useFacts = (
  shown: NumberDetail,
  { teams, waiting }: { teams: number; waiting: number },
  attempt: Cell,
): Section =>
  buildFacts(
    {
      Teams:
        teams > 0
          ? number(teams)
          : text('No team uses it', { href: '/operator/teams', detail: 'Choose it on the page of a team.' }),
      'Waiting messages': number(waiting),
      'Last attempt': attempt,
      'Messages per second': number(shown.messages_per_second),
      'Phone number ID': text(shown.phone_number_id, { code: true, copy: true }),
      'WhatsApp Business Account ID': text(shown.account_id, { code: true, copy: true }),
    },
    { id: 'first', live: true },
  )

/** @param site the public URL, or null if it isn't set. */
const hookFacts = (shown: NumberDetail, site: string | null): Section =>
  buildFacts(
    {
      [site === null ? 'Callback path' : 'Callback URL']: text(
        `${site?.replace(/\/$/, '') ?? ''}${shown.hook ?? '/hooks/whatsapp'}`,
        { code: true, copy: true },
      ),
      'Verify token': shown.verify_token
        ? text(shown.verify_token, { code: true, copy: true })
        : text('the web processes’ WHATSAPP_VERIFY_TOKEN'),
    },
    {
      title: 'Webhook of the Meta app',
      note: 'Subscribe the app to the fields below. Meta doesn’t report which fields it is subscribed to.',
    },
  )

const FIELDS: Section = { kind: 'code', title: 'Fields of the webhook', code: WEBHOOK_FIELDS.join('\n') }

const changeForm = (shown: NumberDetail): Section =>
  buildForm(`${numberPath(shown.name)}/set`, 'Save number', {
    title: 'Change the number',
    note: 'Empty fields aren’t changed.',
    folded: 'menu',
    fields: [
      secretField('token', 'New access token'),
      secretField('app_secret', 'New app secret'),
      field('messages_per_second', 'Messages per second', {
        ...RATE,
        value: String(shown.messages_per_second),
      }),
    ],
  })

/** Builds the buttons, with the next step first. An automatic pause ends on its own, so missing steps come before. */
function numberButtons({ name, paused, subscribed, missing }: NumberDetail, isByHand: boolean): Form[] {
  const check = button(`${numberPath(name)}/check`, 'Check now', { tone: 'quiet' })
  return compact([
    paused && isByHand && button(`${numberPath(name)}/resume`, 'Resume number'),
    subscribed === false &&
      button(`${numberPath(name)}/check`, 'Subscribe app', {
        fields: [hidden('subscribe', 'yes')],
        tone: isByHand ? 'quiet' : undefined,
      }),
    missing.length > 0 && check,
    paused && !isByHand && button(`${numberPath(name)}/resume`, 'Resume number', { tone: 'quiet' }),
    missing.length === 0 && check,
    !paused && button(`${numberPath(name)}/pause`, 'Pause number', { tone: 'quiet', menu: true }),
    button(`${numberPath(name)}/remove`, 'Remove number', { tone: 'danger' }),
  ])
}

const one = get(
  'operator',
  `${PATH}/:name`,
  async ({ params: { name }, now }, { database, secrets, publicUrl }) => {
    const shown = await showNumber(database, secrets, name)
    const use = await useOfNumber(database, shown)
    const facts = await readNumberFacts(database, now)
    const pause = facts.sends.get(name)
    const isByHand = pause?.paused_at != null
    return show({
      title: name,
      state: { ...numberState(name, facts), detail: undefined },
      lead: compact([shown.display_phone_number, shown.verified_name]).join(', ') || undefined,
      back: { href: PATH, label: 'WhatsApp numbers' },
      actions: { forms: numberButtons(shown, isByHand) },
      above: buildAlerts([numberPauseAlert(name, facts), ...missingAlerts(shown)], {
        id: 'needs',
        live: true,
      }),
      sections: [metaFacts(shown, now), hookFacts(shown, publicUrl), FIELDS, changeForm(shown)],
      aside: [useFacts(shown, use, attemptCell(name, facts))],
    })
  },
)

const set = post('operator', `${PATH}/:name/set`, async (request, deps) => {
  const { form, params } = request
  const change = {
    ...{ token: typed(form, 'token'), app_secret: typed(form, 'app_secret') },
    messages_per_second: readRate(form),
  }
  await setNumber(createTools(request, deps), params.name, change)
  return redirect(numberPath(params.name), 'The number was saved.')
})

const check = post('operator', `${PATH}/:name/check`, async (request, deps) => {
  const subscribe = request.form.get('subscribe') === 'yes'
  const checked = await checkNumber(createTools(request, deps), request.params.name, { subscribe })
  return redirect(numberPath(checked.name), `Checked with Meta. ${missingWords(checked)}`)
})

const doing = (verb: string, work: (by: By, name: string) => Promise<unknown>, words: string) =>
  action('operator', `${PATH}/:name/${verb}`, async (by, { params: { name } }) => {
    await work(by, name)
    return redirect(numberPath(name), words)
  })

const pause = doing('pause', pauseNumber, 'The number is paused. Its messages wait.')
const resume = doing('resume', resumeNumber, 'The number is resumed.')

const remove = action('operator', `${PATH}/:name/remove`, async (by, { params: { name } }) => {
  await removeNumber(by, name)
  return redirect(PATH, `The number ${name} was removed.`)
}).confirm(async ({ params }, { database, secrets }) => ({
  question: `Remove the number ${(await showNumber(database, secrets, params.name)).name}?`,
  answer: 'Remove number',
  warning: 'Its access token is deleted.',
  tone: 'danger',
}))

export const numberPages = [list, add, one, set, check, pause, resume, remove]
