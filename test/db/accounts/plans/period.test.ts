/** The start of quota periods: calendar months, and billing periods that roll over. */
import fc from 'fast-check'
import { calendarMonth, rolledPeriod } from '../../../../db/accounts/plans/period.ts'
import t from '../../../support/tap.ts'

const day = (text: string): Date => new Date(text.includes('T') ? text : `${text}T00:00:00Z`)

const rolled = (start: string, end: string, now: string): string[] => {
  const period = rolledPeriod({ start: day(start), end: day(end) }, day(now))
  return [period.start, period.end].map((at) => at.toISOString().replace('T00:00:00.000Z', ''))
}

t.test('a period of exact months rolls over by calendar months', async (t) => {
  t.strictSame(rolled('2026-01-31', '2026-02-28', '2026-02-27'), ['2026-01-31', '2026-02-28'])
  t.strictSame(rolled('2026-01-31', '2026-02-28', '2026-02-28'), ['2026-02-28', '2026-03-31'])
  t.strictSame(rolled('2026-01-31', '2026-02-28', '2026-04-29'), ['2026-03-31', '2026-04-30'])
  t.strictSame(rolled('2026-01-31', '2026-02-28', '2028-03-01'), ['2028-02-29', '2028-03-31'])
  t.strictSame(rolled('2026-02-28', '2026-03-31', '2026-04-30'), ['2026-04-30', '2026-05-31'])
  t.strictSame(rolled('2026-02-28', '2026-03-28', '2026-03-28'), ['2026-03-28', '2026-04-28'])
  t.strictSame(rolled('2026-01-15', '2027-01-15', '2029-01-14'), ['2028-01-15', '2029-01-15'], 'a year')
  t.strictSame(rolled('2025-11-30', '2026-02-28', '2026-05-30'), ['2026-05-30', '2026-08-30'], 'a quarter')
  const noon = rolled('2026-01-31T12:30:00Z', '2026-02-28T12:30:00Z', '2026-03-31T12:29:00Z')
  t.strictSame(noon, ['2026-02-28T12:30:00.000Z', '2026-03-31T12:30:00.000Z'], 'at its time of day')
})

t.test('any other period rolls over by its own length', async (t) => {
  t.strictSame(rolled('2026-01-01', '2026-01-31', '2026-02-01'), ['2026-01-31', '2026-03-02'])
  t.strictSame(rolled('2026-01-01', '2026-01-08', '2026-01-20'), ['2026-01-15', '2026-01-22'])
  const odd = rolled('2026-01-10', '2026-02-10T01:00:00Z', '2026-02-10T01:00:00Z')
  t.strictSame(odd, ['2026-02-10T01:00:00.000Z', '2026-03-13T02:00:00.000Z'], 'a month and an hour')
})

t.test('calendar months start on first days, in UTC', async (t) => {
  const month = (now: string) => calendarMonth(new Date(now))
  const february = { start: day('2028-02-01'), end: day('2028-03-01') }
  for (const now of ['2028-02-01T00:00:00Z', '2028-02-29T23:59:59.999Z']) t.strictSame(month(now), february)
  t.strictSame(month('2026-12-31T23:59:59Z'), { start: day('2026-12-01'), end: day('2027-01-01') })
})

t.test('uses the first period before its start', async (t) => {
  t.strictSame(rolled('2026-01-31', '2026-02-28', '2025-06-01'), ['2026-01-31', '2026-02-28'])
  t.strictSame(rolled('2026-01-01', '2026-01-08', '2025-06-01'), ['2026-01-01', '2026-01-08'])
})

t.test('a period starts where the previous one ends', async (t) => {
  const instant = fc.date({ min: day('2024-01-01'), max: day('2032-01-01'), noInvalidDate: true })
  const length = fc.oneof(
    fc.record({ months: fc.integer({ min: 1, max: 13 }) }),
    fc.record({ days: fc.integer({ min: 1, max: 400 }) }),
  )
  fc.assert(
    fc.property(instant, length, fc.nat({ max: 3_000 }), (start, size, later) => {
      const end = new Date(start)
      if ('months' in size) end.setUTCMonth(end.getUTCMonth() + size.months)
      else end.setUTCDate(end.getUTCDate() + size.days)
      const now = new Date(start.getTime() + later * 86_400_000)
      const period = rolledPeriod({ start, end }, now)
      const next = rolledPeriod({ start, end }, period.end)
      return period.start <= now && now < period.end && next.start.getTime() === period.end.getTime()
    }),
  )
  t.pass()
})
