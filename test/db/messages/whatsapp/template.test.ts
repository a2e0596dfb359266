// The parameters of a template, from the provider's object. DECISIONS: Parameters.

import fc from 'fast-check'
import { parametersProblem as problemOf } from '../../../../db/messages/whatsapp/parameters.ts'
import { toShape } from '../../../../db/messages/whatsapp/template.ts'
import { EMPTY } from '../../../support/empty.ts'
import t from '../../../support/tap.ts'

const body = (text: string) => ({ type: 'BODY', text })
const buttons = (...list: unknown[]) => ({ type: 'BUTTONS', buttons: list })
const url = (address: string) => ({ type: 'URL', text: 'Open', url: address })
const reply = { type: 'QUICK_REPLY', text: 'Stop' }
const shape = (...components: unknown[]) => toShape({ name: 'a', language: 'en', components })

const parametersProblem = (slots: readonly string[], values: Readonly<Record<string, string>>) =>
  problemOf(slots, null, values)

t.test('variables are in header, body and dynamic URL', async (t) => {
  t.match(
    shape(
      buttons(reply, url('https://a.b/{{1}}')),
      body('{{2}} and {{1}}, {{1}}'),
      { type: 'HEADER', format: 'TEXT', text: 'Order {{1}}' },
      { type: 'FOOTER', text: 'Bye {{x}}' },
    ),
    { slots: ['header:1', 'body:1', 'body:2', 'url:1'], url_buttons: [1], unsupported: null },
  )
})

t.test('a URL button keeps its position among all buttons', async (t) => {
  t.strictSame(shape(body('x'), buttons(url('https://a.b/{{1}}'))).url_buttons, [0])
  t.strictSame(shape(body('x'), buttons(reply, reply, url('https://a.b/{{1}}'))).url_buttons, [2])
  const { slots, url_buttons } = shape(
    body('x'),
    buttons(url('https://a.b'), { type: 'PHONE_NUMBER' }, url('https://a.b/{{1}}'), url('https://c.d/{{1}}')),
  )
  t.strictSame(url_buttons, [2, 3])
  t.strictSame(slots, ['url:1', 'url:2'])
})

t.test('static templates have no variables, and types match any case', async (t) => {
  t.strictSame(shape(body('Hello'), buttons(url('https://a.b'), reply)).slots, [])
  t.strictSame(shape({ type: 'header', text: 'Hi' }, { type: 'body', text: '{{1}}' }).slots, ['body:1'])
})

t.test('a one-time password uses its code twice', async (t) => {
  const created = [
    { type: 'BODY', add_security_recommendation: true },
    { type: 'FOOTER', code_expiration_minutes: 10 },
    buttons({ type: 'OTP', otp_type: 'COPY_CODE' }),
  ]
  const listed = [
    body('*{{1}}* is your verification code.'),
    buttons(url('https://www.whatsapp.com/otp/code/?otp_type=COPY_CODE&code=otp{{1}}')),
  ]
  for (const components of [created, listed]) {
    t.match(toShape({ name: 'a', language: 'en', category: 'AUTHENTICATION', components }), {
      slots: ['body:1', 'url:1'],
      url_buttons: [0],
      unsupported: null,
    })
  }
  t.match(shape(...created).unsupported, /button of the kind otp/, 'of another category')
  t.match(
    toShape({ category: 'AUTHENTICATION', components: [body('x'), buttons(url('https://a.b'))] }),
    { slots: EMPTY, url_buttons: EMPTY, unsupported: null },
    'what the provider has written out without a slot has none',
  )
})

t.test('names unsupported components', async (t) => {
  const odd: [RegExp, ...unknown[]][] = [
    [/header of the kind gif/, { type: 'HEADER', format: 'GIF' }, body('x')],
    [/header of the kind product/, { type: 'HEADER', format: 'PRODUCT' }, body('x')],
    [/header has more than one variable/, { type: 'HEADER', format: 'TEXT', text: '{{1}} {{2}}' }],
    [/a component of the kind carousel/, body('x'), { type: 'CAROUSEL' }],
    [/more than one component of the kind body/, body('x'), body('y')],
    [/component of the kind unknown/, null],
    [/component of the kind unknown/, 'BODY'],
    [/button of the kind flow/, body('x'), buttons({ type: 'FLOW' })],
    [/button of the kind otp/, body('x'), buttons({ type: 'OTP' })],
    [/button of the kind unknown/, body('x'), buttons(null)],
    [/button has more than one variable/, body('x'), buttons(url('https://{{1}}/{{2}}'))],
    [/body has an invalid variable, or mixes numbered and named variables/, body('Hello {{0}}')],
    [/body has an invalid variable, or mixes numbered and named variables/, body('Hello {{}}')],
    [/body has an invalid variable, or mixes numbered and named variables/, body('Hello {{1}}, {{name}}')],
    [/the numbers of the body's variables have a gap/, body('Hello {{2}}')],
    [/the numbers of the body's variables have a gap/, body('Hello {{1}} {{9999}}')],
    [/button of the kind catalog/, body('x'), buttons({ type: 'CATALOG' })],
    [/button of the kind mpm/, body('x'), buttons({ type: 'MPM' })],
    [/component of the kind limited_time_offer/, body('x'), { type: 'LIMITED_TIME_OFFER' }],
    [/component of the kind call_permission_request/, body('x'), { type: 'CALL_PERMISSION_REQUEST' }],
    [/more than one copy-code button/, body('x'), buttons({ type: 'COPY_CODE' }, { type: 'COPY_CODE' })],
  ]
  for (const [words, ...components] of odd) {
    const { slots, unsupported } = shape(...components)
    t.match(unsupported, words)
    t.strictSame(slots, [])
  }
})

t.test('any object has a shape', async () => {
  const type = fc.constantFrom('HEADER', 'BODY', 'BUTTONS', 'FOOTER', 'x', 5, null)
  const text = fc.oneof(fc.string(), fc.constant('{{1}} {{2}}'), fc.constant(7))
  const component = fc.record(
    { type, text, format: text, url: text, buttons: fc.anything() },
    { requiredKeys: [] },
  )
  fc.assert(
    fc.property(fc.array(fc.oneof(component, fc.anything())), fc.anything(), (components, format) => {
      const { slots, url_buttons } = toShape({ components, parameter_format: format })
      return slots.filter((slot) => slot.startsWith('url:')).length === url_buttons.length
    }),
  )
  toShape({ components: [body('{{'.repeat(100_000))] })
  toShape({ components: [body('{{1}}'.repeat(20_000))] })
})

t.test('parameters must contain exactly the variables', async (t) => {
  const at = (problem: RegExp) => ({ field: 'parameters', problem })
  t.equal(parametersProblem(['body:1'], { 'body:1': 'Ana' }), null)
  t.match(parametersProblem(['body:1', 'url:1'], { 'body:1': 'Ana' }), at(/Missing: url:1$/))
  t.match(parametersProblem([], { 'body:1': 'Ana' }), at(/"body:1"\. The template has no variables$/))
  t.match(parametersProblem(['body:1'], { 'body:1': 'Ana', toString: 'x' }), at(/"toString"/))
  t.match(parametersProblem(['body:1'], JSON.parse('{"__proto__":"x"}')), at(/Missing: body:1$/))
})

t.test('a value has 1 to 1024 characters on one line', async (t) => {
  const problem = (value: string) => parametersProblem(['body:1'], { 'body:1': value })
  const at = (problem: RegExp) => ({ field: 'parameters["body:1"]', problem })
  for (const value of ['a', '😀'.repeat(1_024), 'a    b']) t.equal(problem(value), null)
  t.match(problem(''), at(/empty/))
  t.match(problem('a'.repeat(1_025)), at(/1024/))
  for (const between of '\n\r\t\v\f\u0085\u2028\u2029')
    t.match(problem(`a${between}b`), at(/line breaks or tabs/))
  t.match(problem('a     b'), at(/four spaces/))
})

t.test('names missing and available variables', async (t) => {
  const slots = ['header:1', 'body:1']
  t.match(parametersProblem(slots, {}), { problem: /Missing: header:1, body:1$/ })
  t.match(parametersProblem(slots, { 'header:1': 'a', 'body:1': 'b', ['x'.repeat(65)]: 'c' }), {
    problem: new RegExp(`"${'x'.repeat(64)}"\\. The template's variables are header:1, body:1$`),
  })
})

t.test('variables with names are counted by their first occurrence', async (t) => {
  const { slots, parts, unsupported } = shape(
    { type: 'HEADER', format: 'TEXT', text: 'Sale until {{ until }}' },
    body('{{first_name}}, {{until}} {{first_name}}: {{code_1}}'),
    buttons(url('https://a.b/{{path}}')),
  )
  t.equal(unsupported, null)
  t.strictSame(slots, ['header:1', 'body:1', 'body:2', 'body:3', 'url:1'])
  t.strictSame(parts.names, {
    ...{ 'header:1': 'until', 'body:1': 'first_name', 'body:2': 'until', 'body:3': 'code_1' },
    'url:1': 'path',
  })
  t.strictSame(shape(body('{{ 1 }}')).slots, ['body:1'])
})

t.test('values have the lengths that Meta allows', async (t) => {
  const at = (slot: string) => ({ field: `parameters["${slot}"]` })
  const check = (given: unknown[], values: Record<string, string>, changes: object = {}) => {
    const { slots, parts } = toShape({ components: given, ...changes })
    return problemOf(slots, parts, values)
  }
  const header = { type: 'HEADER', format: 'TEXT', text: 'Order {{1}}!' }
  t.equal(check([header], { 'header:1': 'x'.repeat(53) }), null)
  t.match(check([header], { 'header:1': 'x'.repeat(54) }), { ...at('header:1'), problem: /60/ })
  const twice = body('{{1}}{{1}}{{2}}')
  t.equal(check([twice], { 'body:1': 'x'.repeat(512), 'body:2': 'x' })?.field, 'parameters["body:1"]')
  t.equal(check([twice], { 'body:1': 'x'.repeat(500), 'body:2': '😀'.repeat(24) }), null)
  t.match(check([twice], { 'body:1': 'x', 'body:2': 'x'.repeat(1_030) }), {
    ...at('body:2'),
    problem: /shorter.* the body would have 1032 characters/,
  })
  t.match(check([header], { 'header:1': 'x'.repeat(54) }), { problem: /the header would have 61 characters/ })
  t.match(check([header], { 'header:1': 'x'.repeat(1_030) }), {
    problem: /the header would have 1037 characters/,
  })
  const button = buttons(url('https://a.example/{{1}}'))
  t.equal(check([button], { 'url:1': 'x'.repeat(1_982) }), null)
  t.match(check([button], { 'url:1': 'x'.repeat(1_983) }), at('url:1'))
  const code = buttons({ type: 'COPY_CODE', example: 'x' })
  t.equal(check([code], { 'code:1': 'x'.repeat(20) }), null)
  t.match(check([code], { 'code:1': 'x'.repeat(21) }), at('code:1'))
  const two = buttons({ type: 'COPY_CODE', example: 'x' }, url('https://a.example/{{1}}'))
  t.equal(check([two], { 'code:1': 'x', 'url:1': 'x'.repeat(100) }), null)
  t.match(check([two], { 'code:1': 'x'.repeat(21), 'url:1': 'x' }), at('code:1'))
  const password = [{ type: 'BODY' }, buttons({ type: 'OTP', otp_type: 'ONE_TAP' })]
  const of = { category: 'AUTHENTICATION' }
  t.equal(check(password, { 'body:1': '1'.repeat(15), 'url:1': '1'.repeat(15) }, of), null)
  t.match(check(password, { 'body:1': '1'.repeat(16), 'url:1': '1' }, of), at('body:1'))
  t.match(check(password, { 'body:1': '1', 'url:1': '1'.repeat(16) }, of), at('url:1'))
})

t.test('media headers need a URL, location headers a place', async (t) => {
  const check = (format: string, ...values: string[]) => {
    const { slots, parts } = shape({ type: 'HEADER', format }, body('{{1}}'))
    const named = Object.fromEntries(values.map((value, index) => [`header:${index + 1}`, value]))
    return problemOf(slots, parts, { ...named, 'body:1': 'x' })
  }
  const link = 'https://files.example.com/a.png'
  const longest = `${link}?${'x'.repeat(2_048 - link.length - 1)}`
  for (const format of ['IMAGE', 'VIDEO']) {
    for (const fits of [link, longest]) t.equal(check(format, fits), null)
    for (const not of [
      'http://files.example.com/a',
      'files',
      'https://',
      `x${link}`,
      `${link} x`,
      `${longest}x`,
    ])
      t.match(check(format, not), { field: 'parameters["header:1"]' }, not)
  }
  t.equal(check('DOCUMENT', link, 'Invoice 17.pdf'), null)
  t.match(check('DOCUMENT', link), { problem: /Missing: header:2$/ })
  t.match(check('DOCUMENT', 'files', 'a.pdf'), { field: 'parameters["header:1"]' })
  t.match(check('DOCUMENT', link, 'x'.repeat(1_025)), { field: 'parameters["header:2"]' })
  t.equal(check('LOCATION', '-90', '37.48321', 'Office', '1 Hacker Way'), null)
  for (const [latitude, longitude] of [
    ['90.1', '0'],
    ['0', '-180.5'],
    ['1e1', '0'],
    ['0', 'east'],
  ] as const)
    t.match(check('LOCATION', latitude, longitude, 'a', 'b'), { field: /header:[12]/ })
})

t.test('treats an invalid list as empty', async (t) => {
  const none = { slots: EMPTY, url_buttons: EMPTY, unsupported: null }
  t.match(toShape({ components: 'BODY' }), none)
  t.strictSame(shape({ type: 'HEADER' }, { type: 'BODY' }).slots, [], 'nor has a text that is none a slot')
  t.match(shape(body('x'), { type: 'BUTTONS', buttons: { type: 'URL' } }), none)
})
