/** The table of WhatsApp numbers with their state, on their page and on Health. Pure, except for its facts. */

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
import { type Cell, status, type Tone, text, time } from '../../components/cell.ts'
import type { Section } from '../../components/section.ts'
import { buildTable } from '../../server/builders.ts'
import { isWorking } from './workers.ts'

export const NUMBERS_PATH = '/operator/numbers'
export const numberPath = (name: string): string => `${NUMBERS_PATH}/${name}`

const QUALITY_TONES: Readonly<Partial<Record<string, Tone>>> = { GREEN: 'good', YELLOW: 'warn', RED: 'bad' }

export const qualityCell = (quality: string | null): Cell =>
  quality === null ? text(null) : status(quality, { tone: QUALITY_TONES[quality] ?? 'plain' })

export const toStateCell = ({ paused }: WhatsappNumber): Cell =>
  paused ? status('paused', { tone: 'warn' }) : status('active')

/** A number, or the ID of the default one, which isn't checked. */
type Listed = WhatsappNumber | Awaited<ReturnType<typeof defaultNumber>>

type Sends = Awaited<ReturnType<typeof numberSends>>

/** True if a running worker sends from the default number. */
const hasWorker = (processes: readonly ProcessRow[]): boolean =>
  processes.filter(isWorking).some(({ queues }) => queues.includes('deliver-whatsapp'))

/** The senders of all numbers, and if a worker sends from the default number. */
type Facts = { sends: Sends; isDefaultSent: boolean; now: Date }

export const readNumberFacts = async (tx: Tx, now: Date): Promise<Facts> => ({
  sends: await numberSends(tx),
  isDefaultSent: hasWorker(await liveProcesses(tx, LISTED_FOR_S)),
  now,
})

function defaultState({ sends, isDefaultSent }: Facts): Cell {
  if (sends.get(DEFAULT_NUMBER)?.paused) return status('paused', { tone: 'warn' })
  return isDefaultSent ? status('active') : status('no worker', { tone: 'bad' })
}

/** Builds the cell with the missing steps and the age of the last check. */
function setupCell({ missing, checked_at }: WhatsappNumber, now: Date): Cell {
  if (checked_at === null) return text('not checked')
  const detail = `checked ${time(checked_at, now).age}`
  return missing.length === 0
    ? text('complete', { detail })
    : status(`${plural(missing.length, 'step')} missing`, { tone: 'warn', detail, tip: missing.join(', ') })
}

type Cells = Record<'Number' | 'Status' | 'Last attempt' | 'Quality' | 'Limit' | 'Setup', Cell>

export const attemptCell = (name: string, { sends, now }: Facts): Cell =>
  time(sends.get(name)?.attempted_at ?? null, now, 'none yet')

/** Builds the cells of the default number, which workers get from their settings. */
const defaultCells = (phoneNumberId: string, facts: Facts): Cells => ({
  Number: text('Default', { detail: `ID ${phoneNumberId}` }),
  Status: defaultState(facts),
  'Last attempt': attemptCell(DEFAULT_NUMBER, facts),
  Quality: text(null),
  Limit: text(null),
  Setup: text('not checked', { detail: 'the workers’ settings' }),
})

const namedCells = (each: WhatsappNumber, facts: Facts): Cells => ({
  Number: text(each.name, { href: numberPath(each.name), detail: each.display_phone_number ?? undefined }),
  Status: toStateCell(each),
  'Last attempt': attemptCell(each.name, facts),
  Quality: qualityCell(each.quality),
  Limit: text(each.messaging_limit),
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
    { title, wrap: ['Number', 'Setup'], empty: 'No numbers yet.' },
  )
