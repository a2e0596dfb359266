/** Cells with a team's bounce and complaint rates of the last seven days. Pure. */

import type { SendingOfWeek } from '../../../../db/stats/daily/sending.sql.ts'
import { type Cell, number, text } from '../../components/cell.ts'
import { percent } from '../../components/percent.ts'
import { ALARMING_SHARE } from '../../components/shares.ts'

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

/** The same, with the emails that weren't sent to a suppressed recipient. */
export const weekCells = (week: SendingOfWeek | undefined): Record<string, Cell> => ({
  ...rateCells(week),
  Suppressed: number(week?.suppressed ?? 0),
})
