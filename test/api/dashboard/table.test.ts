/** The layout of tables depends on the roles of columns, not on the rows. */
import { text, time } from '../../../api/dashboard/components/cell.ts'
import { tableReady } from '../../../api/dashboard/components/table.ts'
import { buttonCell, type Roles, tableOf } from '../../../api/dashboard/server/builders.ts'
import t from '../../support/tap.ts'

const NOW = new Date('2026-11-29T12:00:00Z')

type Row = { name: string; note: string }

/** Returns the classes and labels of cells, and the name for buttons. */
const layoutOf = (rows: readonly Row[], roles: Roles<'Created' | 'Note' | 'Name' | 'Revoke'>) =>
  tableReady(
    tableOf(
      rows,
      ({ name, note }) => ({
        Created: time(NOW.toISOString(), NOW),
        Note: text(note),
        Name: text(name),
        Revoke: buttonCell('/revoke', 'Revoke key'),
      }),
      { ...roles, empty: '' },
    ),
  ).rows.map(({ of, cells }) => ({ of, cells: cells.map(({ look, label }) => ({ look, label })) }))

const SHORT: Row = { name: 'Key A', note: 'imported' }
const LONG: Row = { name: 'The key of the shop in the old town', note: 'imported from the previous service' }

t.test('a long value doesn’t change the layout of its table', async (t) => {
  const [alone] = layoutOf([SHORT], { main: 'Name' })
  const [first, second] = layoutOf([SHORT, LONG], { main: 'Name' })
  t.strictSame(first, alone)
  t.strictSame(second?.cells, alone?.cells)
})

t.test('the main column names buttons and grows', async (t) => {
  const [row] = layoutOf([SHORT], { main: 'Name' })
  t.equal(row?.of, 'Key A')
  t.strictSame(row?.cells.slice(0, 3), [
    { look: 'self', label: false },
    { look: '', label: 'Note' },
    { look: 'main wide self', label: false },
  ])
})

t.test('wrapping columns don’t grow, and others do if named', async (t) => {
  const look = (roles: Parameters<typeof layoutOf>[1]) =>
    layoutOf([LONG], roles)[0]?.cells.map(({ look }) => look)
  t.strictSame(look({ main: 'Name', wrap: ['Name'] }), ['self', '', 'main wrap self', 'self'])
  t.strictSame(look({ main: 'Name', grow: ['Note'] }), ['self', 'wide self', 'main self', 'self'])
  t.strictSame(look({}), ['main wide self', '', '', 'self'])
})

t.test('a value that is cut among six columns has a tooltip', async (t) => {
  const number = '+436641234567'
  const whole = (columns: number) => {
    const cells = Object.fromEntries(Array.from({ length: columns }, (_, at) => [`${at}`, text(number)]))
    return tableReady(tableOf([cells], (row) => row, { empty: '' })).rows[0]?.cells[1]?.whole
  }
  t.equal(whole(5), false)
  t.equal(whole(6), number)
})
