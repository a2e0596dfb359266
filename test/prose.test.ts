/**
 * Counts constructions that readers stumble over (support/odd-constructions.tsv), per kind of text. No count
 * may rise. After a rewrite, `UPDATE_PROSE=1` stores the lower counts.
 */
import { glob, readFile, writeFile } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { type Comment, parse } from 'acorn'
import { ancestor } from 'acorn-walk'
import { documents, sentencesOf } from './support/documents.ts'
import { ROOT, sources } from './support/sources.ts'
import t from './support/tap.ts'

const SUPPORT = join(import.meta.dirname, 'support')
const COUNTS = join(SUPPORT, 'odd-constructions.json')

type Place = 'documents' | 'comments' | 'test comments' | 'test titles' | 'pages' | 'other strings'
type Counts = Record<string, Record<string, number>>
type Text = { file: string; text: string }

const PAGES = /^api\/(dashboard|public)\//
const SQL = /^\s*(?:(?:select|insert|update|delete|with|where|and|set|from|create|alter)\b|do \$\$)/i

/** True for a string that looks like a sentence and isn't SQL. */
const isProse = (text: string): boolean => /[a-z]+ [a-z]+ [a-z]/.test(text) && !SQL.test(text)

/** The comments and strings of a source file. */
function textsOf(file: string, text: string): { comments: string[]; strings: string[]; titles: string[] } {
  const comments: Comment[] = []
  const [strings, titles]: [string[], string[]] = [[], []]
  // The stripped text keeps the comments between types and declarations.
  const program = parse(stripTypeScriptTypes(text), {
    ...{ ecmaVersion: 'latest', sourceType: 'module', allowHashBang: true },
    onComment: comments,
  })
  ancestor(program, {
    Literal({ value }, _state, ancestors) {
      if (typeof value !== 'string') return
      const call = ancestors.at(-2)
      const isTitle =
        call?.type === 'CallExpression' && /^t\.test$/.test(text.slice(call.callee.start, call.callee.end))
      if (file.startsWith('test/') ? isTitle : isProse(value)) (isTitle ? titles : strings).push(value)
    },
    TemplateLiteral({ quasis }) {
      const value = quasis.map(({ value: { cooked } }) => cooked ?? '').join('…')
      if (!file.startsWith('test/') && isProse(value)) strings.push(value)
    },
  })
  return { comments: comments.map(({ value }) => value.replaceAll(/\n *\* ?/g, ' ')), strings, titles }
}

const inFile = (file: string, texts: readonly string[]): Text[] => texts.map((text) => ({ file, text }))

/** The lines of the views, without their tags. */
async function linesOfViews(): Promise<Text[]> {
  const files = await Array.fromAsync(glob('api/**/*.hbs', { cwd: ROOT }))
  const views = await Promise.all(files.map((file) => readFile(join(ROOT, file), 'utf8')))
  return views.flatMap((view, index) =>
    inFile(
      files[index] ?? '',
      view
        .replaceAll(/<[^>]*>|\{\{[^}]*\}\}/g, '')
        .split('\n')
        .filter(isProse),
    ),
  )
}

async function readPlaces(): Promise<Record<Place, Text[]>> {
  const places: Record<Place, Text[]> = {
    documents: (await documents()).flatMap(({ file, text }) => inFile(file, sentencesOf(text))),
    ...{
      comments: [],
      'test comments': [],
      'test titles': [],
      pages: await linesOfViews(),
      'other strings': [],
    },
  }
  for (const { file, text } of await sources('api', 'workers', 'db', 'test')) {
    const { comments, strings, titles } = textsOf(file, text)
    places[file.startsWith('test/') ? 'test comments' : 'comments'].push(...inFile(file, comments))
    places['test titles'].push(...inFile(file, titles))
    places[PAGES.test(file) ? 'pages' : 'other strings'].push(...inFile(file, strings))
  }
  return places
}

/** Returns the matches of each pattern in each place, with their files. */
async function find(): Promise<Record<string, Record<string, string[]>>> {
  const lines = (await readFile(join(SUPPORT, 'odd-constructions.tsv'), 'utf8')).trimEnd().split('\n')
  const patterns = lines.map((line) => line.split('\t') as [string, string])
  const places = await readPlaces()
  return Object.fromEntries(
    Object.entries(places).map(([place, texts]) => [
      place,
      Object.fromEntries(
        patterns.map(([name, pattern]) => {
          const expression = new RegExp(pattern, 'g')
          return [
            name,
            texts.flatMap(({ file, text }) =>
              [...text.matchAll(expression)].map(
                ({ 0: match, index }) =>
                  `${file}: …${text.slice(Math.max(0, index - 30), index + match.length + 30)}…`,
              ),
            ),
          ]
        }),
      ),
    ]),
  )
}

t.test('no odd construction becomes more frequent', async (t) => {
  const found = await find()
  const counts: Counts = Object.fromEntries(
    Object.entries(found).map(([place, each]) => [
      place,
      Object.fromEntries(Object.entries(each).map(([name, { length }]) => [name, length])),
    ]),
  )
  t.ok(Object.keys(counts).length === 6 && Object.keys(counts.documents ?? {}).length > 40)
  const stored: Counts = JSON.parse(await readFile(COUNTS, 'utf8').catch(() => '{}'))
  const most = (place: string, name: string): number => stored[place]?.[name] ?? Number.MAX_SAFE_INTEGER
  if (process.env.UPDATE_PROSE) {
    for (const [place, each] of Object.entries(counts))
      for (const name of Object.keys(each)) each[name] = Math.min(each[name] ?? 0, most(place, name))
    await writeFile(COUNTS, `${JSON.stringify(counts, null, 2)}\n`)
  }
  const risen = Object.entries(found).flatMap(([place, each]) =>
    Object.entries(each).flatMap(([name, matches]) =>
      matches.length > most(place, name)
        ? [`${place}: “${name}” ${matches.length} times, at most ${most(place, name)}: ${matches.join(', ')}`]
        : [],
    ),
  )
  t.strictSame(risen, [])
})
