/**
 * Checks texts: the headings and lines that comments and survivors.ts cite, wide comments, terms with a
 * plainer synonym, and the sentences and links of documents.
 */
import { access, readFile } from 'node:fs/promises'
import { dirname, join, normalize, relative } from 'node:path'
import { SURVIVORS } from './mutants/survivors.ts'
import { anchorsOf, countWords, documents, linksOf, sentencesOf } from './support/documents.ts'
import { ROOT, sources } from './support/sources.ts'
import t from './support/tap.ts'

/** Every file except this one, which contains the forbidden terms. */
const all = (await sources('api', 'workers', 'db', 'test')).filter(
  ({ file }) => file !== relative(ROOT, import.meta.filename),
)

const pages = await documents()

const linesWith = (pattern: RegExp): string[] =>
  all.flatMap(({ file, text }) =>
    text
      .split('\n')
      .filter((line) => pattern.test(line))
      .map((line) => `${file}: ${line.trim()}`),
  )

t.test('comments cite headings of api/DECISIONS.md and no external document', async (t) => {
  const page = await readFile(join(ROOT, 'api/DECISIONS.md'), 'utf8')
  const headings = new Set([...page.matchAll(/^### (.+)$/gm)].map(([, heading]) => heading))
  const cited = all.flatMap(({ file, text }) =>
    [...text.replace(/\n *(?:\*|\/\/) ?/g, ' ').matchAll(/DECISIONS: ([^.;)*]+)/g)].flatMap(([, list = '']) =>
      list.split(',').map((heading) => ({ file, heading: heading.trim() })),
    ),
  )
  t.ok(cited.length > 50)
  const unknown = cited.filter(({ heading }) => !headings.has(heading))
  t.strictSame(unknown, [])
  // A section sign is of an RFC, which it follows on its line.
  t.strictSame(
    linesWith(/^(?!.*RFC).*§|\b[Dd]ecisions: |[a-z]\.md §|\b(decisions|providers|reliability|design)\.md/),
    [],
  )
  t.strictSame(linesWith(/\breliability:? [A-F]\d*\b|\b[Ii]ssues? #?\d/), [])
})

t.test('survivors.ts cites lines of its sources exactly', async (t) => {
  const cited = Object.entries(SURVIVORS).flatMap(([file, reasons]) =>
    Object.values(reasons).flatMap((names) => names.map((name) => ({ file, name }))),
  )
  t.ok(cited.length > 100)
  const lines = new Map(all.map(({ file, text }) => [file, text.split('\n').map((line) => line.trim())]))
  // A mutant of one line ends with the line. A mutant of several lines names none.
  const isStale = ({ file, name }: { file: string; name: string }): boolean =>
    name.includes(' in ') && !lines.get(file)?.some((line) => line !== '' && name.endsWith(` in ${line}`))
  t.strictSame(cited.filter(isStale), [])
})

t.test('no comment is wider than 120 columns', async (t) => {
  const wide = linesWith(/^(?=.{121})\s*(\*|\/\/|\/\*)/)
  t.strictSame(wide, [])
})

t.test('every module has a header', async (t) => {
  const bare = all.filter(({ text }) => !/^(\/\*\*|\/\/ |#!)/.test(text)).map(({ file }) => file)
  t.strictSame(bare, [])
})

t.test('terms with plainer synonyms are not used', async (t) => {
  const names = /tell(ing)?[A-Z]|[a-z](Tell|Told)|\btell\(|\b(const|let|function) tell/
  const words = /(?<![a-z])(whoever|so many|anew|mend(s|ed|ing)?|told)(?![a-z])/i
  t.strictSame([...linesWith(words), ...linesWith(names)], [])
  for (const { file, text } of pages) t.notMatch(text, words, file)
})

const MAX_WORDS = 30
const MAX_MEAN_WORDS = 14

/** A run writes the results, and the conditions of the run are a list with semicolons. */
const written = pages.filter(({ file }) => !file.endsWith('RESULTS.md'))

for (const { file, text } of written)
  t.test(`${file} has short sentences without semicolons`, async (t) => {
    const sentences = sentencesOf(text)
    const long = sentences.filter((sentence) => countWords(sentence) > MAX_WORDS || sentence.includes(';'))
    t.strictSame(long, [])
    const words = sentences.reduce((sum, sentence) => sum + countWords(sentence), 0)
    t.ok(
      words / sentences.length <= MAX_MEAN_WORDS,
      `${(words / sentences.length).toFixed(1)} words on average`,
    )
  })

/** Served documents link to paths of the service, which test/api/docs.test.ts checks. */
const linked = pages.filter(({ file }) => !file.startsWith('api/docs/'))

t.test('links between documents lead to a file and a heading', async (t) => {
  const anchors = new Map(linked.map(({ file, text }) => [file, anchorsOf(text)]))
  t.ok(linked.flatMap(({ text }) => linksOf(text)).length > 50)
  for (const { file, text } of linked)
    for (const link of linksOf(text)) {
      const [path = '', heading] = link.split('#')
      const target = path === '' ? file : normalize(join(dirname(file), path))
      const isThere = await access(join(ROOT, target)).then(
        () => true,
        () => false,
      )
      t.ok(isThere, `${file}: ${link}`)
      if (heading !== undefined) t.ok(anchors.get(target)?.has(heading), `${file}: ${link}`)
    }
})
