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

/** @param week undefined if the team sent nothing. */
export function weekCells(week: SendingOfWeek | undefined): Record<string, Cell> {
  const { sent = 0, hard_bounced = 0, complained = 0, suppressed = 0 } = week ?? {}
  return {
    Bounced: shareCell(sent, hard_bounced, ALARMING_SHARE.bounced),
    Complaints: shareCell(sent, complained, ALARMING_SHARE.complained),
    Suppressed: number(suppressed),
  }
}
