/** Formats SQL for reading: a clause per line, and subqueries indented. */

const WIDTH = 110
const CLAUSE = new RegExp(
  '^(with|select|insert into|update (?!skip)|delete from|from|where|set|values|returning|union all|union|left join|' +
    'cross join|join|order by|group by|having|limit|on conflict|for no key update|for update|and|or)\\b',
)
/** Keywords that belong to another clause. */
const WITHIN = /\b(distinct|between \S+) $/
const OPENS = /^(select|with|insert into|update|delete from)\b/

/** Breaks a line that is too long, after a comma or before a branch. */
function wrapped(line: string, indent: string, further = `${indent}  `): string[] {
  const width = WIDTH - indent.length
  const cuts = [...line.matchAll(/(?<=,) | (?=when |else |and )/g)].map(({ index }) => index)
  const cut = cuts.findLast((at) => at > 0 && at <= width)
  if (line.length <= width || cut === undefined) return [indent + line]
  return [indent + line.slice(0, cut), ...wrapped(line.slice(cut + 1), further, further)]
}

/** Formats a statement. Removes unnecessary quotes from names. */
export function linesOf(statement: string): string {
  const text = statement
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/"([a-z_][a-z0-9_]*)"/g, '$1')
    .replaceAll(/\( /g, '(')
    .replaceAll(/ \)/g, ')')
    .trim()
  const lines: string[] = []
  // For each open bracket, true if it starts a query, which gets its own lines.
  const brackets: boolean[] = []
  let line = ''
  let cases = 0
  const deep = () => brackets.filter(Boolean).length
  const end = (): void => {
    const indent = '  '.repeat(deep() + (/^(and|or)\b/.test(line) ? 1 : 0))
    if (line.trim() !== '') lines.push(...wrapped(line.trim(), indent))
    line = ''
  }
  for (let at = 0; at < text.length; at += 1) {
    const char = text[at] ?? ''
    const rest = text.slice(at)
    const literal = char === "'" ? (/^'(?:[^']|'')*'/.exec(rest)?.[0] ?? char) : null
    const begins = /[ (]/.test(text[at - 1] ?? ' ')
    if (begins && /^case\b/.test(rest)) cases += 1
    if (begins && /^end\b/.test(rest)) cases -= 1
    if (literal !== null) {
      line += literal
      at += literal.length - 1
    } else if (char === '(') {
      line += char
      const isQuery = OPENS.test(text.slice(at + 1))
      if (isQuery) end()
      brackets.push(isQuery)
    } else if (char === ')') {
      const isQuery = brackets.at(-1) === true
      if (isQuery) end()
      brackets.pop()
      line += char
    } else {
      const isClause = begins && brackets.at(-1) !== false && cases === 0 && !WITHIN.test(line)
      const clause = isClause ? CLAUSE.exec(rest)?.[0] : undefined
      if (clause !== undefined) end()
      line += clause ?? char
      at += (clause?.length ?? 1) - 1
    }
  }
  end()
  return `${lines.join('\n')}\n`
}
