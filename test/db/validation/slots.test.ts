// Variables of templates and their values. DECISIONS: Variables, HTML of template emails.

import fc from 'fast-check'
import Handlebars from 'handlebars'
import { compileHtml, decodeVariables } from '../../../db/validation/attributes.ts'
import {
  compileTemplate,
  filledBytes,
  fillSlots,
  missingSlots,
  TemplateFault,
} from '../../../db/validation/slots.ts'
import t from '../../support/tap.ts'

const filled = (source: string, variables: Record<string, string>, escaping: 'html' | 'none' = 'html') =>
  fillSlots(compileTemplate(source), variables, escaping)

const faultOf = (source: string): string => {
  try {
    compileTemplate(source)
  } catch (error) {
    if (error instanceof TemplateFault) return error.message
    throw error
  }
  return ''
}

t.test('variables are {{name}}, listed once in order of appearance', async (t) => {
  t.strictSame(compileTemplate('{{b}} {{ a }} {{b}} {{\n_x-1.é\t}}').slots, ['b', 'a', '_x-1.é'])
  t.strictSame(compileTemplate('no slots, } }} or { here').slots, [])
  t.equal(filled('', {}), '')
})

t.test("a variable's name is literal", async (t) => {
  const dotted = 'a.b a..b .a a. . .. ... 1 -1 1.5 1a a.this this.a else.x -'.split(' ')
  const words = 'true null undefined this as else else-x elsewhere if lookup s constructor'.split(' ')
  for (const name of [
    ...dotted,
    ...words,
    '__proto__',
    'constructor.constructor',
    'toString',
    'hasOwnProperty',
  ]) {
    t.strictSame(compileTemplate(`{{${name}}}`).slots, [name])
    t.equal(filled(`<{{${name}}}>`, JSON.parse(`{"${name}":"v"}`)), '<v>')
    t.strictSame(missingSlots([name], {}), [name])
    t.throws(() => filled(`{{${name}}}`, {}), RangeError)
  }
})

t.test('rejects templates with anything but text and variables', async (t) => {
  const tags = ['#if a}}b{{/if', '#a}}{{/a', '^a}}{{/a', '^', 'else if a', '/a', '>p', '> (p)', '#>p}}{{/p']
  const calls = [
    'a b',
    'a "b"',
    'a b=1',
    'a (b)',
    '(a)',
    '*a',
    '#*inline "a"}}{{/inline',
    '#each a as |b|}}{{/each',
  ]
  const paths = [
    '@a',
    '@root.a',
    '../a',
    './a',
    'a/b',
    'this/a',
    '[a]',
    'a.[b]',
    '"a"',
    "'a'",
    '&a',
    '{a}',
    '~a',
    'a~',
  ]
  for (const tag of [...tags, ...calls, ...paths, '', ' ', 'a:b', 'a\u0301', 'a', 'a}'].filter(
    (tag) => tag !== 'a',
  )) {
    t.match(faultOf(`x{{${tag}}}`), /^line 1: \{\{.* isn't a \{\{name\}\} variable/su, tag)
  }
  t.match(
    faultOf('{{{{raw}}}} {{a}} {{{{/raw}}}}'),
    "line 1: {{{{raw}}}} isn't a {{name}} variable. A name can contain letters, digits and . _ -",
  )
  for (const open of ['{{', '{{a', '{{a}', 'a{{#if b', '{{a b']) t.match(faultOf(open), /isn't closed$/)
  for (const tag of ['!', '! a', '!-- a --', '!--a', '~! a', '~!-- a --~', 'a!', '!a'])
    t.match(faultOf(`x{{${tag}}}`), /^line 1: \{\{.* isn't a \{\{name\}\} variable/su, tag)
  t.match(faultOf('{{!-- {{x}} --}}'), /^line 1: \{\{!-- \{\{x\}\} isn't a/)
  for (const open of ['{{! a', '{{!-- a --}']) t.match(faultOf(open), /isn't closed$/)
  for (const slashes of ['\\', '\\\\'])
    t.match(faultOf(`${slashes}{{#if a}}`), /^line 1: \{\{#if a\}\} isn't a/, 'a backslash hides nothing')
  t.match(faultOf('{{a}}\n\0'), 'line 2: a NUL character')
  t.equal(faultOf('a\r\nb\rc\nd {{x'), "line 4: {{x isn't closed")
  t.match(faultOf('\0'), 'line 1: a NUL character')
})

t.test('an error names the line and the construct', async (t) => {
  t.match(faultOf('{{a}}\n{{b}}\r\n{{#if c}}{{/if}}'), /^line 3: \{\{#if c\}\} isn't/)
  t.match(faultOf('{{#if\n a}}'), /^line 1: \{\{#if a\}\} isn't/)
  t.match(faultOf('\n{{{a}}}b'), /^line 2: \{\{\{a\}\}\} isn't/)
  t.equal(faultOf('{{a \n'), "line 1: {{a isn't closed")
  t.ok(faultOf(`{{#${'a '.repeat(10_000)}}}`).length < 200)
  const [whole, longer] = [`{{#${'a'.repeat(55)}}}`, `{{#${'a'.repeat(56)}}`]
  t.match(faultOf(whole), `${whole} isn't`)
  t.match(faultOf(`${longer}}`), `${longer}… isn't`, 'after 60 characters')
})

t.test('escapes values in HTML, and not in text', async (t) => {
  const variables = { a: `<b> & "c" 'd' \`e\` = é😀` }
  t.equal(filled('{{a}}', variables), '&lt;b&gt; &amp; &quot;c&quot; &#x27;d&#x27; &#x60;e&#x60; &#x3D; é😀')
  t.equal(filled('{{a}}', variables, 'none'), variables.a)
  t.equal(filled('[{{a}}]', { a: '' }), '[]')
})

t.test("values aren't expanded again", async (t) => {
  t.equal(filled('{{a}}{{b}}', { a: '{{b}}', b: '$1$$' }), '{{b}}$1$$')
  t.equal(filled('{{a}}', { a: '{{{a}}}' }, 'none'), '{{{a}}}')
})

t.test('only own properties fill variables, others are ignored', async (t) => {
  const nothing = new RangeError('The variable a has no value.')
  t.throws(() => filled('{{a}}', Object.create({ a: 'inherited' })), nothing)
  t.equal(filled('{{a}}', { a: '1', b: '2' }), '1')
})

t.test('missingSlots names variables without a value', async (t) => {
  t.strictSame(missingSlots(['a', 'b', 'c'], { b: '' }), ['a', 'c'])
  t.strictSame(missingSlots(['a', 'b'], null), ['a', 'b'])
  t.strictSame(missingSlots([], null), [])
  t.strictSame(missingSlots(['__proto__'], JSON.parse('{"__proto__":"x"}')), [])
})

t.test('html values leave no unescaped < > " or quote', async () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), fc.string(), (a, b) => {
      return !/[<>"']/.test(filled('{{a}}-{{b}}-{{a}}', { a, b }))
    }),
  )
})

/** Text in which no tag starts, also not together with the following text. */
const plain = fc
  .array(fc.constantFrom('\\', '{', '}', '}}', '\n', ' ', '\r\n', 'a', '!', '😀', '<', '&'), { maxLength: 8 })
  .map((pieces) => pieces.join('').replace(/\{+/g, '{').replace(/\{$/, ''))
const name = fc.constantFrom('x', 'else', 'if', 'this', 'a.b', '__proto__', '1', '-', 'é')

t.test('keeps every character outside variables', async (t) => {
  for (const escaping of ['html', 'none'] as const) {
    t.equal(filled('C:\\{{a}}', { a: 'x' }, escaping), 'C:\\x')
    t.equal(filled('\\{{a}} \\\\{{a}} \\\\\\{{ a }}', { a: 'x' }, escaping), '\\x \\\\x \\\\\\x')
  }
  t.strictSame(compileTemplate('\\{{a}}\\\\{{b}}').slots, ['a', 'b'])
  fc.assert(
    fc.property(
      fc.array(fc.tuple(plain, name)),
      plain,
      fc.constantFrom('', ' ', '\n\t'),
      (parts, end, space) => {
        const source = parts.map(([text, slot]) => `${text}{{${space}${slot}${space}}}~`).join('') + end
        const variables = Object.fromEntries([['x', ''], ...parts.map(([, slot], at) => [slot, `<${at}>`])])
        const expected = parts.map(([text, slot]) => `${text}${variables[slot]}~`).join('') + end
        const slots = [...new Set(parts.map(([, slot]) => slot))]
        return (
          compileTemplate(source).slots.join() === slots.join() &&
          filled(source, variables, 'none') === expected
        )
      },
    ),
    { numRuns: 2000 },
  )
})

t.test('renders like Handlebars where both agree', async () => {
  const scraps = ['{{x}}', '{{ y }}', '\n', ' ', '\r\n', 'a', '}', '{', '!', '~']
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...scraps), { maxLength: 12 }), (pieces) => {
      const source = pieces.join('')
      if (faultOf(source) !== '') return true
      const variables = Object.fromEntries(compileTemplate(source).slots.map((slot) => [slot, `<${slot}"`]))
      return filled(source, variables) === Handlebars.compile(source)(variables)
    }),
    { numRuns: 3000 },
  )
})

t.test('every rejection is a TemplateFault', async () => {
  const scraps = fc.constantFrom(
    '{{',
    '}}',
    '{',
    '}',
    '\\',
    '!',
    '--',
    '~',
    '#',
    '/',
    '>',
    'else',
    'a',
    '.',
    ' ',
    '\n',
    '"',
    '[',
    '\0',
  )
  fc.assert(
    fc.property(fc.array(scraps, { maxLength: 20 }), (pieces) => faultOf(pieces.join('')).length >= 0),
    { numRuns: 3000 },
  )
})

t.test('compiles 10,000 variables and hostile sources quickly', async (t) => {
  const names = Array.from({ length: 10_000 }, (_, at) => `n${at}`)
  const many = compileTemplate(names.map((name) => `{{${name}}}`).join(','))
  t.strictSame(many.slots, names)
  t.equal(fillSlots(many, Object.fromEntries(names.map((name) => [name, name])), 'html'), names.join(','))
  const nestings = [
    '{{#a}}'.repeat(100_000),
    '{{#a}}'.repeat(50_000) + '{{/a}}'.repeat(50_000),
    `{{a ${'(a '.repeat(50_000)}`,
  ]
  for (const source of [
    ...nestings,
    '{'.repeat(100_000),
    `{{a${'}'.repeat(100_000)}`,
    `{{!--${'-'.repeat(100_000)}`,
  ]) {
    t.not(faultOf(source), '')
  }
  const fine = ['\\', '\n', ' ', '}', '\\{{a}}', '\\\\{{a}}\n']
  for (const scrap of fine)
    t.equal(faultOf(`${scrap.repeat(100_000 / scrap.length)}x{{ ${' '.repeat(100_000)}a}}`), '')
})

t.test('computes the size of a filled template without rendering', async (t) => {
  const part = fc.oneof(
    fc.constantFrom('{{a}}', '{{b.c}}', 'é', '&', '<p>'),
    fc.string().filter((text) => !/[{}]/.test(text)),
  )
  const same = fc.property(
    fc.array(part),
    fc.record({ a: fc.string({ unit: 'grapheme' }), 'b.c': fc.string() }),
    fc.constantFrom('html' as const, 'none' as const),
    (parts, variables, escaping) => {
      const template = compileTemplate(parts.join(''))
      const made = fillSlots(template, variables, escaping)
      return filledBytes(template, variables, escaping) === Buffer.byteLength(made)
    },
  )
  t.doesNotThrow(() => fc.assert(same))
})

t.test('only quoted attributes keep = and ` of values', (t) => {
  const v = `a=1&b=\`"'<>`
  const escaped = fillSlots(compileTemplate('{{v}}'), { v }, 'html')
  const kept = 'a=1&amp;b=`&quot;&#x27;&lt;&gt;'
  t.match(escaped, /^a&#x3D;1&amp;b&#x3D;&#x60;/)
  for (const source of [
    '<a href="{{v}}">',
    "<a href='x{{v}}'>",
    '<A class=x HREF = "{{v}}/">',
    '<!-- <a href="--><b id=\'"\' title="{{v}}">',
    'a < b "<br/><a x=1/"2" href="{{v}}"',
    '<p>"</p><a data-x title="{{v}}">',
  ]) {
    const made = fillSlots(compileHtml(source), { v }, 'html')
    t.equal(made, source.replace('{{v}}', kept), source)
    t.equal(filledBytes(compileHtml(source), { v }, 'html'), Buffer.byteLength(made))
  }
  for (const source of [
    '<a href={{v}}>',
    '{{v}}',
    '<p>"{{v}}"</p>',
    '<!-- <a href="{{v}}"> -->',
    '<a href="x">{{v}}</a>',
    '<a "{{v}}">',
    '<a href=x"{{v}}">',
  ])
    t.equal(fillSlots(compileHtml(source), { v }, 'html'), source.replace('{{v}}', escaped), source)
  const both = '{{v}}<a href="{{v}}">{{v}}<a href={{v}} title=\'{{v}}\'>'
  t.strictSame([...(compileHtml(both).quoted ?? [])], [1, 4])
  t.end()
})

t.test('decodes encoded variables in attributes', (t) => {
  const decoded = (html: string) => decodeVariables(html)
  t.strictSame(decoded('<a href="https://x.test/%7B%7Bname%7D%7D?a=%7b%7ba.b%7d%7d">%7B%7Bno%7D%7D</a>'), {
    html: '<a href="https://x.test/{{name}}?a={{a.b}}">%7B%7Bno%7D%7D</a>',
    decoded: ['name', 'a.b'],
  })
  t.equal(decoded('<a href=%7B%7B%20n%C3%A9e%20%7D%7D>').html, '<a href={{née}}>')
  t.strictSame(decoded("<img src='%7B%7Ba%7D%7D%7B%7Ba%7D%7D'>").decoded, ['a'])
  for (const html of ['%7B%7Ba b%7D%7D', '%7B%7B%7D%7D', '%7B%7B%FF%7D%7D', '%7Ba%7D', '%7B%7B#if%7D%7D'])
    t.strictSame(decoded(`<a href="${html}">`), { html: `<a href="${html}">`, decoded: [] })
  const hostile = ['%7B%7B', '<a "', '<a x="', '<!--', '<a x=%7B%7Ba', '<a x="%7B%7B'].map((text) =>
    text.repeat(150_000),
  )
  for (const html of hostile) t.equal(decoded(html).html, html)
  t.end()
})
