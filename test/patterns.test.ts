/**
 * Proves with recheck that no regular expression of the source has exponential or polynomial running time,
 * and that those of the tests' own `t.match` can fail. A proof depends only on the expression and the version
 * of recheck, so patterns.sha256 lists the digests of proven ones. After a change, run this test with
 * UPDATE_PATTERNS=1, which proves all again.
 */
import { createHash } from 'node:crypto'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { type AnyNode, type Node, parse } from 'acorn'
import { full, simple } from 'acorn-walk'
import { check } from 'recheck'
import recheck from 'recheck/package.json' with { type: 'json' }
import { sources } from './support/sources.ts'
import t from './support/tap.ts'

const ROOT = join(import.meta.dirname, '..')

/** Files that build regular expressions from our own constants. */
const DYNAMIC_PATTERNS = [
  'db/accounts/domains/record-tags.ts',
  'db/messages/broadcasts/audience.sql.ts',
  'db/messages/emails/return-path.ts',
  'workers/providers/whatsapp/reports.ts',
]

/** Limited by steps instead of time, so a busy machine only delays a proof. */
const UNTIMED = {
  timeout: null,
  attackTimeout: null,
  incubationTimeout: null,
  mutationTimeout: null,
  seedingTimeout: null,
} as const

const PROVEN = join(ROOT, 'test/patterns.sha256')
const isUpdate = process.env.UPDATE_PATTERNS === '1'

const digestOf = (pattern: string, flags: string): string =>
  createHash('sha256').update(`recheck ${recheck.version} /${pattern}/${flags}`).digest('hex').slice(0, 16)

t.test('recheck proves that all regular expressions run in linear time', async (t) => {
  const patterns = new Map<string, { file: string; pattern: string; flags: string }>()
  const dynamic: string[] = []
  const files = await Promise.all(
    ['api', 'workers', 'db'].map(async (folder) => {
      const names = await readdir(join(ROOT, folder), { recursive: true })
      return names.filter((name) => name.endsWith('.ts')).map((name) => join(folder, name))
    }),
  )
  for (const file of files.flat()) {
    const text = await readFile(join(ROOT, file), 'utf8')
    const program = parse(stripTypeScriptTypes(text), { ecmaVersion: 'latest', sourceType: 'module' })
    simple(program, {
      Literal({ regex }) {
        if (regex) patterns.set(`${regex.pattern} ${regex.flags}`, { file, ...regex })
      },
      NewExpression({ callee }) {
        if (callee.type === 'Identifier' && callee.name === 'RegExp') dynamic.push(file)
      },
    })
  }
  t.ok(patterns.size > 100)
  // Only built from our own constants.
  t.strictSame(dynamic.sort(), DYNAMIC_PATTERNS.toSorted())
  const proven = new Set(isUpdate ? [] : (await readFile(PROVEN, 'utf8')).split(/\s+/))
  const safe: string[] = []
  for (const { file, pattern, flags } of patterns.values()) {
    const digest = digestOf(pattern, flags)
    const { status } = proven.has(digest) ? { status: 'safe' } : await check(pattern, flags, UNTIMED)
    t.equal(status, 'safe', `${file}: /${pattern}/${flags}`)
    if (status === 'safe') safe.push(digest)
  }
  if (!isUpdate) return
  const lines = Array.from({ length: Math.ceil(safe.length / 6) }, () => safe.sort().splice(0, 6).join(' '))
  await writeFile(PROVEN, `${lines.join('\n')}\n`)
})

const isEmptyText = (node: Node | null): boolean => node !== null && 'value' in node && node.value === ''

/** True if tap would accept anything for a pattern or a part of it: `[]`, `{}`, `''`. */
function fitsAll(node: AnyNode): boolean {
  if (node.type === 'ArrayExpression') return node.elements.length === 0 || node.elements.some(isEmptyText)
  if (node.type === 'Property') return isEmptyText(node.value)
  return node.type === 'ObjectExpression' && node.properties.length === 0
}

t.test('no pattern of t.match has a part that matches anything', async (t) => {
  const vain: string[] = []
  for (const { file, text } of await sources('test')) {
    const program = parse(stripTypeScriptTypes(text), { ecmaVersion: 'latest', sourceType: 'module' })
    simple(program, {
      CallExpression({ callee, arguments: [, pattern] }) {
        if (callee.type !== 'MemberExpression' || !pattern || pattern.type === 'SpreadElement') return
        const { object, property } = callee
        if (object.type !== 'Identifier' || object.name !== 't') return
        if (property.type !== 'Identifier' || property.name !== 'match') return
        full(pattern, (node) => {
          if (fitsAll(node as AnyNode)) vain.push(`${file}: ${text.slice(node.start - 20, node.end)}`)
        })
      },
    })
  }
  t.strictSame(vain, [])
})
