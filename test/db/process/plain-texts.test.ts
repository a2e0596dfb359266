/** Text parts from HTML, in the process and in the thread. */
import { createPlainTexts, type PlainTexts } from '../../../db/process/plain-texts.ts'
import { compileTemplate, fillSlots } from '../../../db/validation/slots.ts'
import t, { type Test } from '../../support/tap.ts'

function begin(t: Test): PlainTexts {
  const texts = createPlainTexts()
  t.teardown(() => texts.close())
  return texts
}

t.test('links become text with their URL, or only the URL', async (t) => {
  const { ofHtml } = begin(t)
  const text = await ofHtml('<p>See <a href="https://shop.example/a?b=1&amp;c=2">our shop</a>.</p>')
  t.equal(text, 'See our shop (https://shop.example/a?b=1&c=2).')
  t.equal(await ofHtml('<a href="https://shop.example">https://shop.example</a>'), 'https://shop.example')
  t.equal(await ofHtml('<a href="mailto:a@shop.example">a@shop.example</a>'), 'a@shop.example')
})

t.test('each list item and table row is one line', async (t) => {
  const { ofHtml } = begin(t)
  const html = `<ul><li>One</li><li>Two</li></ul>
    <table><tr><th>Item</th><th>Price</th></tr><tr><td>Tea</td><td>3 €</td></tr></table>`
  const lines = (await ofHtml(html)).split('\n').filter((line) => line !== '')
  t.equal(lines.length, 4)
  t.match(lines[0], /\bOne$/)
  t.match(lines[1], /\bTwo$/)
  t.match(lines[2], /^Item[ \t]Price$/)
  t.match(lines[3], /^Tea[ \t]3 €$/)
})

t.test('paragraphs in list items and cells add no lines', async (t) => {
  const { ofHtml } = begin(t)
  t.equal(await ofHtml('<ul><li><p>One</p></li><li><p>Two</p></li></ul>'), '* One\n * Two')
  const rows =
    '<tr><td><p>Tea</p></td><td> <div><p>3 €</p></div> </td></tr><tr><td><p>a</p><p>b</p></td></tr>'
  t.equal(await ofHtml(`<table>${rows}</table>`), 'Tea 3 €\n\na\n\nb')
  t.equal(await ofHtml('<a href=" https://a.example ">A</a>'), 'A (https://a.example)')
})

t.test('leaves out titles, styles and scripts', async (t) => {
  const { ofHtml } = begin(t)
  const parts = '<title>A</title><style>p { color: red }</style><script>b()</script><p>Hello</p>'
  t.equal(await ofHtml(parts), 'Hello')
  t.equal(await ofHtml(`<html><head>${parts}</head><body><p>Hi</p></body></html>`), 'Hi')
})

t.test('short and long HTML give the same text', async (t) => {
  const { ofHtml } = begin(t)
  const paragraph = '<p>Grüße &amp; <a href="https://a.example">mehr</a></p>'
  const line = 'Grüße & mehr (https://a.example)'
  t.equal(await ofHtml(paragraph), line)
  t.equal(await ofHtml(paragraph.repeat(1_000)), Array(1_000).fill(line).join('\n\n'))
})

// In quadratic time, each would run for an hour.
t.test('HTML of any shape is converted in linear time', { timeout: 120_000 }, async (t) => {
  const { ofHtml } = begin(t)
  const converted = (part: string) => ofHtml(`Hello ${part.repeat(1024 * 1024)}`.slice(0, 1024 * 1024))
  for (const part of ['<div>', '<a href=x>', '<td>', '<li>', '<', '<b></i>'])
    t.match(await converted(part), /^Hello/, part)
  t.type(await converted('<p>x'), 'string', 'empty if the thread lacks the memory')
})

t.test('a template is converted once, and keeps its variables', async (t) => {
  const { ofTemplate } = begin(t)
  const template = compileTemplate(
    '<p>Hi {{name}}, <a href="{{link}}">{{link}}</a> <a href="{{link}}">go</a></p>',
  )
  const text = await ofTemplate(template)
  t.equal(await ofTemplate(template), text)
  const variables = { name: 'A <b>', link: 'https://a.example/?x=1&y=2' }
  const filled = fillSlots(text, variables, 'none')
  t.equal(filled, 'Hi A <b>, https://a.example/?x=1&y=2 go (https://a.example/?x=1&y=2)')
})

t.test('text that looks like one of our marks stays text', async (t) => {
  const { ofTemplate } = begin(t)
  const text = await ofTemplate(compileTemplate('<p>&#123;&#123;x}} &#xF0000;7&#xF0001; {{a}}</p>'))
  t.strictSame(text.slots, ['a'])
  t.match(fillSlots(text, { a: 'b' }, 'none'), /^\{\{x\}\} .*7.* b$/u)
})
