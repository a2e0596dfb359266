/** The y-axis of charts. */
import { figureSections } from '../../../api/dashboard/components/chart.ts'
import t from '../../support/tap.ts'

/** Returns the labels of the y-axis for a day with this many emails. */
function labels(total: number): string[] {
  const layers = [{ label: 'delivered', tone: 'good', statuses: ['delivered'] }] as const
  const spans = [{ at: 'today', mark: null, counts: [total], total }]
  const [chart] = figureSections('Emails', { spans, layers, column: 'Day', title: 'By day', note: '' })
  return chart?.kind === 'chart' ? chart.ticks.map(({ label }) => label) : []
}

t.test('the y-axis has round values', (t) => {
  t.strictSame(labels(14_600), ['0', '5,000', '10,000', '15,000'])
  t.strictSame(labels(55), ['0', '20', '40', '60'])
  t.strictSame(labels(7), ['0', '2', '4', '6', '8'])
  t.strictSame(labels(1), ['0', '1'], 'no parts of an email')
  t.end()
})
