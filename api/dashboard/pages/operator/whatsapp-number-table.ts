/** The table of WhatsApp numbers with their state, on their page and on Health. Pure, except for its facts. */

import { listSenders } from '../../../../db/delivery/senders/show.ts'
import {
  DEFAULT_NUMBER,
  type defaultNumber,
  numberSends,
  type WhatsappNumber,
} from '../../../../db/messages/whatsapp/numbers.sql.ts'
import { plural } from '../../../../db/plural.ts'
import type { Tx } from '../../../../db/postgres/pool.ts'
import { liveProcesses, type ProcessRow } from '../../../../db/stats/fleet/fleet.sql.ts'
import { LISTED_FOR_S } from '../../../../db/stats/fleet/fleet.ts'
import { type Cell, number, status, type Tone, text, time, timeLeft } from '../../components/cell.ts'
import type { Alert, Section } from '../../components/section.ts'
import { buildTable } from '../../server/builders.ts'
import { type PauseEffects, pauseEffects, withEffect } from './pause-effects.ts'
import { isWorking } from './workers.ts'

export const NUMBERS_PATH = '/operator/numbers'
export const numberPath = (name: string): string => `${NUMBERS_PATH}/${name}`

type Sends = Awaited<ReturnType<typeof numberSends>>

/** The senders of all numbers, the effects of their pauses, and if a worker sends from the default number. */
type Facts = { sends: Sends; effects: PauseEffects; isDefaultSent: boolean; now: Date }

/** Meta's names of qualities, as its own pages show them. */
const QUALITIES: Readonly<Partial<Record<string, { words: string; tone: Tone }>>> = {
  GREEN: { words: 'high', tone: 'good' },
  YELLOW: { words: 'medium', tone: 'warn' },
  RED: { words: 'low', tone: 'bad' },
}

/** Builds the cell with a readable quality. An unknown one keeps Meta's name. */
export function qualityCell(quality: string | null): Cell {
  const known = QUALITIES[quality ?? '']
  if (quality === null || !known) return text(quality)
  return status(known.words, { tone: known.tone, tip: `Meta’s name: ${quality}` })
}

/** Builds the cell with how many users a day a number can write to first. */
export function limitCell(limit: string | null): Cell {
  const [, digits = '', unit] = /^TIER_(\d+)(K?)$/.exec(limit ?? '') ?? []
  if (limit === null) return text(null)
  const tip = `Meta’s name: ${limit}`
  if (limit === 'TIER_UNLIMITED') return text('unlimited', { tip })
  if (digits === '') return text(limit)
  return text(`${number(Number(digits) * (unit === 'K' ? 1_000 : 1)).text} a day`, { tip })
}

/** Builds the cell with the state of a number. A pause by an operator lasts until an operator resumes it. */
export function numberState(name: string, { sends, effects, now }: Facts): Cell {
  const { paused_at, paused_until } = sends.get(name) ?? {}
  if (paused_at) return status('paused', { tone: 'warn', detail: 'by an operator' })
  if (!paused_until) return status('active')
  const detail = `automatically, ${timeLeft(paused_until, now)} left`
  return status('paused', { tone: effects.get(name)?.tone ?? 'bad', detail })
}

/** Builds the alert for a paused number, or false. Operators resume an automatic pause on the page of senders. */
export function numberPauseAlert(name: string, { sends, effects, now }: Facts): Alert | false {
  const { paused_at = null, paused_until = null, pause_reason = null } = sends.get(name) ?? {}
  if (paused_at !== null)
    return {
      tone: 'warn',
      title: 'An operator paused the number on',
      at: time(paused_at, now),
      text: 'Its messages wait until you resume it.',
    }
  const effect = effects.get(name)
  return (
    paused_until !== null && {
      tone: effect?.tone ?? 'bad',
      title: `The number is paused automatically for another ${timeLeft(paused_until, now)}`,
      text: withEffect(pause_reason ?? 'No reason given.', effect),
      link: { href: '/operator/senders', label: 'Show senders' },
    }
  )
}

/** Returns alerts for paused numbers, for a page about several. */
export const numberAlerts = (numbers: readonly WhatsappNumber[], facts: Facts): Alert[] =>
  numbers.flatMap(({ name }) => {
    const alert = numberPauseAlert(name, facts)
    return alert
      ? [
          {
            ...alert,
            title: alert.title
              .replace('the number', `the number ${name}`)
              .replace('The number', `The number ${name}`),
            link: { href: numberPath(name), label: 'Show number' },
          },
        ]
      : []
  })

/** A number, or the ID of the default one, which isn't checked. */
type Listed = WhatsappNumber | Awaited<ReturnType<typeof defaultNumber>>

/** True if a running worker sends from the default number. */
const hasWorker = (processes: readonly ProcessRow[]): boolean =>
  processes.filter(isWorking).some(({ queues }) => queues.includes('deliver-whatsapp'))

export const readNumberFacts = async (tx: Tx, now: Date): Promise<Facts> => ({
  sends: await numberSends(tx),
  effects: await pauseEffects(tx, await listSenders(tx)),
  isDefaultSent: hasWorker(await liveProcesses(tx, LISTED_FOR_S)),
  now,
})

function defaultState(facts: Facts): Cell {
  const pause = facts.sends.get(DEFAULT_NUMBER)
  const isPaused = Boolean(pause?.paused_at ?? pause?.paused_until)
  return isPaused || facts.isDefaultSent
    ? numberState(DEFAULT_NUMBER, facts)
    : status('no worker', { tone: 'bad' })
}

/** Builds the cell with the missing steps and the age of the last check. */
function setupCell({ missing, checked_at }: WhatsappNumber, now: Date): Cell {
  if (checked_at === null) return text('not checked')
  const detail = `checked ${time(checked_at, now).age}`
  return missing.length === 0
    ? text('complete', { detail })
    : status(`${plural(missing.length, 'step')} missing`, { tone: 'warn', detail, tip: missing.join(', ') })
}

type Cells = Record<
  'Number' | 'Sending' | 'Teams' | 'Last attempt' | 'Quality' | 'Messaging limit' | 'Setup',
  Cell
>

export const attemptCell = (name: string, { sends, now }: Facts): Cell =>
  time(sends.get(name)?.attempted_at ?? null, now, 'none yet')

const teamsCell = (name: string, { sends }: Facts): Cell => number(sends.get(name)?.teams ?? 0)

/** Builds the cells of the default number, which workers get from their settings. */
const defaultCells = (phoneNumberId: string, facts: Facts): Cells => ({
  Number: text('Default', { detail: `ID ${phoneNumberId}` }),
  Sending: defaultState(facts),
  Teams: text('all others', { number: true }),
  'Last attempt': attemptCell(DEFAULT_NUMBER, facts),
  Quality: text(null),
  'Messaging limit': text(null),
  Setup: text('in the workers’ settings', { detail: 'not checked' }),
})

const namedCells = (each: WhatsappNumber, facts: Facts): Cells => ({
  Number: text(each.name, { href: numberPath(each.name), detail: each.display_phone_number ?? undefined }),
  Sending: numberState(each.name, facts),
  Teams: teamsCell(each.name, facts),
  'Last attempt': attemptCell(each.name, facts),
  Quality: qualityCell(each.quality),
  'Messaging limit': limitCell(each.messaging_limit),
  Setup: setupCell(each, facts.now),
})

/** Builds the table of numbers with Meta's latest data. @param title undefined if it is the page's title. */
export const numbersTable = (
  numbers: readonly NonNullable<Listed>[],
  facts: Facts,
  title?: string,
): Section =>
  buildTable(
    numbers,
    (each) => ('name' in each ? namedCells(each, facts) : defaultCells(each.phone_number_id, facts)),
    { id: 'numbers', live: true, title, wrap: ['Number', 'Sending', 'Setup'], empty: 'No numbers yet.' },
  )
