/** Cells with a team's bounce and complaint rates of the last seven days. Pure. */

import type { SendingOfWeek } from '../../../../db/stats/daily/sending.sql.ts'
import { type Cell, number, text } from '../../components/cell.ts'
import { percent } from '../../components/percent.ts'
import type { Tile } from '../../components/section.ts'
import { ALARMING_SHARE } from '../../components/shares.ts'
import { compact } from '../../server/builders.ts'

function shareCell(sent: number, count: number, alarming: number): Cell {
  if (sent === 0) return text('–', { number: true })
  return text(percent(count / sent), {
    number: true,
    tone: count / sent > alarming ? 'bad' : undefined,
    detail: `${number(count).text} of ${number(sent).text}`,
  })
}

/** Builds the cells with the rates, each with its count. @param week undefined if the team sent nothing. */
export function rateCells(week: SendingOfWeek | undefined) {
  const { sent = 0, hard_bounced = 0, complained = 0 } = week ?? {}
  return {
    'Hard bounces': shareCell(sent, hard_bounced, ALARMING_SHARE.bounced),
    Complaints: shareCell(sent, complained, ALARMING_SHARE.complained),
  }
}

/** Builds tiles with the rates, the limits of mailbox providers, and the emails not sent to a suppressed recipient. */
export function weekTiles(week: SendingOfWeek | undefined): Tile[] {
  const { 'Hard bounces': bounces, Complaints: complaints } = rateCells(week)
  const rateTile = (label: string, { text: value, tone, detail }: Cell, alarming: number): Tile => ({
    ...{ label, value, tone },
    detail: compact([detail, `limit ${percent(alarming)}`]).join(', '),
  })
  return [
    rateTile('Hard bounces', bounces, ALARMING_SHARE.bounced),
    rateTile('Complaints', complaints, ALARMING_SHARE.complained),
    { label: 'Suppressed', value: number(week?.suppressed ?? 0).text },
  ]
}
