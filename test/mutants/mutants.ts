/**
 * The mutants of a source: each is the source with one small fault in it, as a slip of the hand would make it.
 * Promises: in the order of the source, the same for the same text. Pure. Must not know a test.
 */
import { stripTypeScriptTypes } from 'node:module'
import { type AnyNode, type Node, parse } from 'acorn'
import { fullAncestor } from 'acorn-walk'

/** `name` is the change and the line around it, as the source has it. */
export type Mutant = { line: number; name: string; code: string }
type Change = [start: number, end: number, now: string]

const SWAPS: Record<string, string> = {
  ...{ '<': '<=', '<=': '<', '>': '>=', '>=': '>', '===': '!==', '!==': '===', '&&': '||', '||': '&&' },
  ...{ '??': '&&', '+': '-', '-': '+', '*': '/', '/': '*', '%': '*', '**': '*' },
}
const METHODS: Record<string, string> = {
  ...{ some: 'every', every: 'some', min: 'max', max: 'min', startsWith: 'endsWith', endsWith: 'startsWith' },
  ...{ toLowerCase: 'toUpperCase', floor: 'ceil', ceil: 'floor', trim: 'valueOf', has: 'add' },
}

/** What may be written in the place of a node. */
function changesOf(node: AnyNode, parent: Node | undefined, code: string): Change[] {
  const text = ({ start, end }: Node) => code.slice(start, end)
  const all = (now: string): Change => [node.start, node.end, now]
  switch (node.type) {
    case 'BinaryExpression':
    case 'LogicalExpression': {
      const swap = SWAPS[node.operator]
      const between = code.indexOf(node.operator, node.left.end)
      return swap ? [[between, between + node.operator.length, swap]] : []
    }
    case 'UnaryExpression':
      return node.operator === '!' || node.operator === '-' ? [all(text(node.argument))] : []
    case 'IfStatement':
    case 'ConditionalExpression':
      return ['true', 'false'].map((now) => [node.test.start, node.test.end, now])
    case 'MemberExpression': {
      const swap = node.property.type === 'Identifier' && METHODS[node.property.name]
      return swap ? [[node.property.start, node.property.end, swap]] : []
    }
    case 'BlockStatement':
      return parent && /Function/.test(parent.type) && node.body.length > 0 ? [all('{}')] : []
    case 'ArrayExpression':
      return node.elements.length > 0 ? [all('[]')] : []
    case 'TemplateLiteral':
      return parent?.type === 'TaggedTemplateExpression' ? [] : [all('``')]
    case 'Literal':
      if (parent && /^(Import|Export|Property)/.test(parent.type) && !isValue(parent as AnyNode, node))
        return []
      if (node.regex) return /^\^|\$$/.test(node.regex.pattern) ? [all(unanchored(node.regex))] : []
      if (typeof node.value === 'number') return [all(String(node.value + 1))]
      if (typeof node.value === 'boolean') return [all(String(!node.value))]
      return typeof node.value === 'string' ? [all(node.value === '' ? "'mutant'" : "''")] : []
    default:
      return []
  }
}

/** A list that only a type is made of: once types are stripped, its name is nowhere else. */
const isOfTypesAlone = (node: AnyNode, code: string): boolean =>
  node.type === 'VariableDeclarator' &&
  node.id.type === 'Identifier' &&
  code.split(new RegExp(`\\b${node.id.name}\\b`)).length === 2 &&
  !new RegExp(`export const ${node.id.name}\\b`).test(code)

const isValue = (parent: AnyNode, node: Node): boolean => parent.type === 'Property' && parent.value === node
const unanchored = ({ pattern, flags }: { pattern: string; flags: string }): string =>
  `/${pattern.replace(/^\^/, '').replace(/\$$/, '')}/${flags}`

/** @param source TypeScript; `code` of a mutant is JavaScript, its lines are those of the source. */
export function mutantsOf(source: string): Mutant[] {
  const code = stripTypeScriptTypes(source)
  const changes: Change[] = []
  fullAncestor(parse(code, { ecmaVersion: 'latest', sourceType: 'module' }), (node, _, ancestors) => {
    if (!ancestors.some((each) => isOfTypesAlone(each as AnyNode, code)))
      changes.push(...changesOf(node as AnyNode, ancestors.at(-2), code))
  })
  return changes
    .sort(([a], [b]) => a - b)
    .map(([start, end, now]) => {
      const line = code.slice(0, start).split('\n').length
      const text = source.split('\n')[line - 1] ?? ''
      const was = code.slice(start, end).split('\n')[0]
      return {
        line,
        name: `${was} → ${now || 'nothing'} in ${text.trim()}`,
        code: code.slice(0, start) + now + code.slice(end),
      }
    })
}
