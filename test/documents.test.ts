/** Checks the documents: short sentences without semicolons, and links that lead somewhere. */
import { access } from 'node:fs/promises'
import { dirname, join, normalize } from 'node:path'
import { anchorsOf, countWords, documents, linksOf, sentencesOf } from './support/documents.ts'
import { ROOT } from './support/sources.ts'
import t from './support/tap.ts'

const MAX_WORDS = 30
const MAX_MEAN_WORDS = 14

const all = await documents()
/** A run writes the results, and the conditions of the run are a list with semicolons. */
const written = all.filter(({ file }) => !file.endsWith('RESULTS.md'))

for (const { file, text } of written)
  t.test(`${file} has short sentences without semicolons`, async (t) => {
    const sentences = sentencesOf(text)
    t.strictSame(
      sentences.filter((sentence) => countWords(sentence) > MAX_WORDS || sentence.includes(';')),
      [],
    )
    const words = sentences.reduce((sum, sentence) => sum + countWords(sentence), 0)
    t.ok(
      words / sentences.length <= MAX_MEAN_WORDS,
      `${(words / sentences.length).toFixed(1)} words on average`,
    )
  })

/** Links of guides lead into the page that shows them: test/api/docs.test.ts checks them. */
const linked = all.filter(({ file }) => !file.startsWith('api/docs/guides/'))

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
