/** Conventions of the code: pages and their HTML, error messages, and lengths of functions. */
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ROOT, SAMPLES, type Source, sources, withoutComments } from './support/sources.ts'
import t from './support/tap.ts'

const all = await sources('api', 'workers', 'db')
const breaking = (holds: (source: Source) => boolean): string[] =>
  all.filter((source) => !holds(source)).map((source) => source.file)

t.test('pages use builders.ts, list.ts, filter.ts and csv.ts', async (t) => {
  const OTHER_WAYS: Readonly<Record<string, RegExp>> = {
    'a page as a literal: get, post, action': /: (?:Team|Person|Own|Open)Page = \{|\bmethod: '(?:GET|POST)'/,
    'a form as a literal: button, buildForm': /\bmethod: 'post'/,
    'columns apart from their cells: buildTable': /\bcolumns: |\bcells: \[/,
    'an empty list in place of nothing: compact': /\.\.\.\([^()]*\? \[\] : \[|\.\.\.\([^?]*\?[^:]*: \[\]\)/,
    'batches read by hand, or a file of a list: defineCsv':
      /for \(let \w+: string \| undefined; ; \)|\bcsvFile\('(?!refused')/,
    'a page of a list by hand: pageById':
      /\bPAGE_SIZE\b|(?:idParam|query\.(?:get|has))\([^)]*'(?:before|after|newer)'/,
    'a filter by hand: defineFilter':
      /kind: 'filter'|\b(?:filled|optionsWithAny|refuseUnknownParams|wordChips|setChips|statusChips)\(/,
    'a hidden field as a literal: hidden': /type: 'hidden', value/,
    'a transaction as the person by hand: action': /\.transaction\([^)]*\) =>[^;]{0,400}actor: person/,
    'a word that builders.ts needs no help with: as const':
      /'(?:form|table|alerts|actions|post|warn|bad|danger)' as const/,
  }
  /**
   * The columns of an imported file are arbitrary, and a preview's parameters don't belong to a list's
   * filter.
   */
  const isApart = ({ file }: Source, way: string): boolean =>
    (file.endsWith('/import-columns.ts') && way.startsWith('columns')) ||
    (file.endsWith('-preview.ts') && way.startsWith('a filter'))
  const found = all
    .filter(({ file }) => file.startsWith('api/dashboard/pages/'))
    .flatMap((source) =>
      Object.entries(OTHER_WAYS)
        .filter(([name, way]) => way.test(withoutComments(source.text)) && !isApart(source, name))
        .map(([name]) => `${source.file}: ${name}`),
    )
  t.strictSame(found, [])
})

t.test('a button names its object, never only a verb', async (t) => {
  const bare =
    /'(?:Create|Delete|Disable|Discard|Drop|Duplicate|Enable|Move|New secret|Pause|Publish|Remove|Rename|Restore|Resume|Revoke|Save)'/
  const pages = all.filter(({ file }) => file.startsWith('api/dashboard/pages/'))
  const naming = pages.filter(({ text }) => bare.test(withoutComments(text))).map(({ file }) => file)
  t.strictSame(naming, [])
})

t.test('views escape everything, and have no inline scripts or styles', async (t) => {
  const under = async (folder: string) =>
    (await readdir(join(ROOT, folder), { recursive: true })).map((file) => `${folder}/${file}`)
  const files = [...(await under('api')), ...(await under('test/sandbox'))].filter((file) =>
    file.endsWith('.hbs'),
  )
  const folders = ['api/dashboard/', 'api/docs/', 'api/public/', 'test/sandbox/']
  t.ok(folders.every((folder) => files.some((file) => file.startsWith(folder))))
  for (const file of files) {
    const text = await readFile(join(ROOT, file), 'utf8')
    t.notMatch(text, /\{\{\{|\{\{~?\s*&|\sstyle=|\son\w+=|=\{\{/, file)
    // A style or script in these pages contains either no value, or only a value.
    const own = /^api\/(docs|public)\//.test(file)
      ? /<(style|script)>(?!\{\{\w+\}\}<|(?:(?!\{\{)[^<])*<\/\1>)/
      : /<style|<script(?! src=)/
    t.notMatch(text, own, file)
  }
  // The style, the script and the guides of the documentation page: none has data of a team.
  const made = all.filter(({ file, text }) => file.startsWith('api/') && /SafeString|triple/.test(text))
  t.equal(made.map(({ file }) => file).join(), 'api/docs/page.ts')
  const sizes = { 'dashboard.css': 24 * 1024, 'dashboard.js': 300 * 90 }
  for (const [name, most] of Object.entries(sizes)) {
    const text = await readFile(join(ROOT, 'api/dashboard/components/assets', name), 'utf8')
    t.ok(Buffer.byteLength(text) <= most, name)
    t.ok(text.split('\n').length <= 301 || name.endsWith('.css'), name)
  }
})

t.test('no module puts values into HTML: views and templates do', async (t) => {
  // They add to a team's own HTML, or to the output of the Markdown library. The last one writes programs.
  const others = [
    ...['api/dashboard/pages/template-preview.ts', 'api/dashboard/server/guard.ts', 'api/docs/guides.ts'],
    SAMPLES,
  ]
  const tag =
    /<(?:a|body|button|code|div|form|h\d|hr|html|img|input|label|li|ol|p|pre|script|span|strong|style|t[drh]|table|ul)\b/
  const isFilled = (literal: string) => literal.includes('${') && tag.test(literal)
  const files = all
    .filter(({ text }) =>
      withoutComments(text)
        .match(/`[^`]*`/g)
        ?.some(isFilled),
    )
    .map(({ file }) => file)
  t.strictSame(files.sort(), others)
})

/** They read messages of Node, PostgreSQL, libraries and providers, which have nothing better. */
const READERS_OF_FOREIGN_MESSAGES = [
  ...['api/http/input.ts', 'db/process/thread.ts', 'db/admin/fault.ts'],
  ...['db/postgres/driver.ts', 'db/postgres/pool.ts'],
]
t.test('no code parses our own error messages', async (t) => {
  const methods =
    'at|charAt|endsWith|includes|indexOf|match|replace|replaceAll|search|slice|split|startsWith|substring'
  const name = String.raw`(?:\w+\??\.)*(?:message|problem)`
  const reading = new RegExp(String.raw`\b${name}\??\.(?:${methods})\(|\.(?:exec|test)\(${name}\b`)
  t.strictSame(
    breaking(
      ({ file, text }) =>
        file.startsWith('workers/providers/') ||
        READERS_OF_FOREIGN_MESSAGES.includes(file) ||
        !reading.test(withoutComments(text)),
    ),
    [],
  )
})

t.test('nearly all error messages are in tables', async (t) => {
  const inPlace = /new (?:RequestError|Unavailable)\(\s*['\w]+,\s*['"`]/
  const files = breaking(({ text }) => !inPlace.test(withoutComments(text)))
  t.ok(files.length <= 15, files.join())
})

t.test('each prepared statement has its own name', async (t) => {
  const names = all.flatMap(({ text }) =>
    [...text.matchAll(/sql\.prepared\('([^']+)'/g)].map(([, name]) => name),
  )
  t.ok(names.length > 20)
  t.equal(names.filter((name, index) => names.indexOf(name) !== index).join(), '')
})

t.test('no function is longer than 60 lines', async (t) => {
  const opens = /^(?:export )?(?:default )?(?:async )?(?:function\b|const \w+.*(?:=> \(?\{|= (?:async )?\()$)/
  // One that is a single expression ends where a blank line follows.
  const isShort = (own: readonly string[], end: number) =>
    own.slice(0, end).some((line) => /^\).* =>$/.test(line))
  const long = all.flatMap(({ file, text }) => {
    const lines = text.split('\n')
    return lines.flatMap((line, at) => {
      const length = opens.test(line)
        ? lines
            .slice(at)
            .findIndex((each, index, own) => /^\}?\)?$/.test(each) && (each || isShort(own, index))) + 1
        : 0
      return length > 60 ? [`${file}: ${line.slice(0, 60)}: ${length}`] : []
    })
  })
  t.strictSame(long, [])
  // The linter also sees nested ones.
  const { overrides } = JSON.parse(await readFile(join(ROOT, 'biome.json'), 'utf8'))
  t.match(overrides[0], {
    includes: ['api/**/*.ts', 'workers/**/*.ts', 'db/**/*.ts'],
    linter: {
      rules: { complexity: { noExcessiveLinesPerFunction: { level: 'error', options: { maxLines: 60 } } } },
    },
  })
  const spared = all.filter(({ text }) => text.includes('noExcessiveLinesPerFunction'))
  t.strictSame(spared, [])
})

t.test('a test file imports t from support/tap.ts', async (t) => {
  const files = (await sources('test')).filter(({ file }) => file.endsWith('.test.ts'))
  const others = files.filter(({ values }) => !values.includes('test/support/tap.ts'))
  t.equal(others.map(({ file }) => file).join(), '')
})
