/**
 * The words of our house, checked: what comments and survivors.ts cite, wide comments, and words that nobody writes.
 */
import { readFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { SURVIVORS } from './mutants/survivors.ts'
import { ROOT, sources } from './support/sources.ts'
import t from './support/tap.ts'

/** All but this file, which names what it forbids. */
const all = (await sources('api', 'workers', 'db', 'test')).filter(
  ({ file }) => file !== relative(ROOT, import.meta.filename),
)

const linesWith = (pattern: RegExp): string[] =>
  all.flatMap(({ file, text }) =>
    text
      .split('\n')
      .filter((line) => pattern.test(line))
      .map((line) => `${file}: ${line.trim()}`),
  )

t.test('a comment cites headings of api/DECISIONS.md alone, and no document from elsewhere', async (t) => {
  const page = await readFile(join(ROOT, 'api/DECISIONS.md'), 'utf8')
  const headings = new Set([...page.matchAll(/^### (.+)$/gm)].map(([, heading]) => heading))
  const cited = all.flatMap(({ file, text }) =>
    [...text.replace(/\n *(?:\*|\/\/) ?/g, ' ').matchAll(/DECISIONS: ([^.;)*]+)/g)].flatMap(([, list = '']) =>
      list.split(',').map((heading) => ({ file, heading: heading.trim() })),
    ),
  )
  t.ok(cited.length > 50)
  t.strictSame(
    cited.filter(({ heading }) => !headings.has(heading)),
    [],
  )
  // A section sign is of an RFC, which it follows on its line.
  t.strictSame(
    linesWith(/^(?!.*RFC).*§|\b[Dd]ecisions: |[a-z]\.md §|\b(decisions|providers|reliability|design)\.md/),
    [],
  )
  t.strictSame(linesWith(/\breliability:? [A-F]\d*\b|\b[Ii]ssues? #?\d/), [])
})

t.test('survivors.ts cites lines of its sources as they are, so that a rename is followed', async (t) => {
  const cited = Object.entries(SURVIVORS).flatMap(([file, reasons]) =>
    Object.values(reasons).flatMap((names) => names.map((name) => ({ file, name }))),
  )
  t.ok(cited.length > 100)
  const lines = new Map(all.map(({ file, text }) => [file, text.split('\n').map((line) => line.trim())]))
  // A mutant of one line ends with it; one of several has none.
  const isStale = ({ file, name }: { file: string; name: string }): boolean =>
    name.includes(' in ') && !lines.get(file)?.some((line) => line !== '' && name.endsWith(` in ${line}`))
  t.strictSame(cited.filter(isStale), [])
})

t.test('no comment is wider than 120 columns', async (t) => {
  const wide = linesWith(/^(?=.{121})\s*(\*|\/\/|\/\*)/)
  t.strictSame(wide, [])
})

t.test('every module opens by saying what it is', async (t) => {
  t.strictSame(
    all.filter(({ text }) => !/^(\/\*\*|\/\/ |#!)/.test(text)).map(({ file }) => file),
    [],
  )
})

t.test('words that nobody writes here have a plainer one', async (t) => {
  const names = /tell(ing)?[A-Z]|[a-z](Tell|Told)|\btell\(|\b(const|let|function) tell/
  const words = /(?<![a-z])(whoever|so many|anew|mend(s|ed|ing)?|told)(?![a-z])/i
  t.strictSame([...linesWith(words), ...linesWith(names)], [])
  const pages = [
    'README.md',
    'api/README.md',
    'api/DASHBOARD.md',
    'api/DECISIONS.md',
    'db/README.md',
    'workers/README.md',
    'db/DATABASE.md',
    'db/CLI.md',
  ]
  for (const page of [...pages, 'test/bench/RESULTS.md', 'test/chaos/RESULTS.md'])
    t.notMatch(await readFile(join(ROOT, page), 'utf8'), words, page)
})
