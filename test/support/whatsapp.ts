/** What WhatsApp tests begin with: template objects as the provider gives them, stored templates, sends, rows. */

import { messagesOfTeam } from '../../db/whatsapp/table.ts'
import { createWhatsappTemplate, setWhatsappTemplateStatus } from '../../db/whatsapp/templates/save.ts'
import type { Service } from './service.ts'

type Place = Pick<Service, 'database' | 'deps'>
export type Json = Record<string, unknown>

/** A text of this many slots. */
const slots = (count: number): string =>
  Array.from({ length: count }, (_, index) => `{{${index + 1}}}`).join(' and ')

/** The provider's template object: approved, with a body of so many slots, and whatever a test changes of it. */
export const aTemplate = (
  {
    body = 1,
    header,
    buttons,
    footer,
  }: { body?: number; header?: Json; buttons?: Json[]; footer?: string } = {},
  changes: Json = {},
): Json => ({
  name: `order_ready_${Math.random().toString(36).slice(2)}`,
  language: 'en_US',
  status: 'APPROVED',
  category: 'UTILITY',
  components: [
    ...(header ? [{ type: 'HEADER', ...header }] : []),
    { type: 'BODY', text: `Hello ${slots(body)}.` },
    ...(footer ? [{ type: 'FOOTER', text: footer }] : []),
    ...(buttons ? [{ type: 'BUTTONS', buttons }] : []),
  ],
  ...changes,
})

/** Stores a template for the team. @returns its id and slots. */
export async function makeTemplate(
  { database, deps }: Place,
  teamId: string,
  definition: Json = aTemplate(),
): Promise<{ id: string; slots: string[] }> {
  const now = deps.clock()
  return await database.transaction(
    async (tx) => await createWhatsappTemplate({ tx, now }, teamId, definition),
  )
}

export const setStatus = async ({ database, deps }: Place, teamId: string, id: string, status: string) =>
  await database.transaction(
    async (tx) => await setWhatsappTemplateStatus({ tx, now: deps.clock() }, teamId, id, status),
  )

/** A send to one number with one body parameter, with whatever a test changes of it. */
export const aMessage = (template_id: string, changes: Json = {}): Json => ({
  template_id,
  to: ['+15555550101'],
  parameters: { 'body:1': 'Ana' },
  ...changes,
})

/** Numbers of the range that is kept for fiction, all different. */
export const numbers = (count: number, from = 0): string[] =>
  Array.from({ length: count }, (_, index) => `+1555555${String(100_000 + from + index).slice(1)}`)

/** The team's rows, oldest first. */
export const rowsOf = async ({ database }: Place, teamId: string) =>
  (await messagesOfTeam(database, teamId, { limit: 100_000 })).toReversed()
