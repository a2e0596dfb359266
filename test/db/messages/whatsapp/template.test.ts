// What a template takes, derived from the provider's object. DECISIONS: Parameters.

import fc from 'fast-check'
import { parametersProblem, shapeOf } from '../../../../db/messages/whatsapp/template.ts'
import t from '../../../support/tap.ts'

const body = (text: string) => ({ type: 'BODY', text })
const buttons = (...list: unknown[]) => ({ type: 'BUTTONS', buttons: list })
const url = (address: string) => ({ type: 'URL', text: 'Open', url: address })
const reply = { type: 'QUICK_REPLY', text: 'Stop' }
const shape = (...components: unknown[]) => shapeOf({ name: 'a', language: 'en', components })

t.test('slots are header text, body 1…n and the dynamic URL button', async (t) => {
  t.strictSame(
    shape(
      buttons(reply, url('https://a.b/{{1}}')),
      body('{{2}} and {{1}}, {{1}}'),
      { type: 'HEADER', format: 'TEXT', text: 'Order {{1}}' },
      { type: 'FOOTER', text: 'Bye {{x}}' },
    ),
    { slots: ['header:1', 'body:1', 'body:2', 'url:1'], url_buttons: [1], unsupported: null },
  )
})

t.test('a URL button keeps its true place among all buttons', async (t) => {
  t.strictSame(shape(body('x'), buttons(url('https://a.b/{{1}}'))).url_buttons, [0])
  t.strictSame(shape(body('x'), buttons(reply, reply, url('https://a.b/{{1}}'))).url_buttons, [2])
  const { slots, url_buttons } = shape(
    body('x'),
    buttons(url('https://a.b'), { type: 'PHONE_NUMBER' }, url('https://a.b/{{1}}'), url('https://c.d/{{1}}')),
  )
  t.strictSame(url_buttons, [2, 3])
  t.strictSame(slots, ['url:1', 'url:2'])
})

t.test('a static template has no slots; types are read in any case', async (t) => {
  t.strictSame(shape(body('Hello'), buttons(url('https://a.b'), reply)).slots, [])
  t.strictSame(shape({ type: 'header', text: 'Hi' }, { type: 'body', text: '{{1}}' }).slots, ['body:1'])
})

t.test('a one-time password takes its code twice, as created and as the provider lists it', async (t) => {
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
    t.strictSame(shapeOf({ name: 'a', language: 'en', category: 'AUTHENTICATION', components }), {
      slots: ['body:1', 'url:1'],
      url_buttons: [0],
      unsupported: null,
    })
  }
  t.match(shape(...created).unsupported, /button of type otp/, 'of another category')
  t.strictSame(
    shapeOf({ category: 'AUTHENTICATION', components: [body('x'), buttons(url('https://a.b'))] }),
    { slots: [], url_buttons: [], unsupported: null },
    'what the provider has written out without a slot has none',
  )
})

t.test('what we cannot send is named, never guessed at', async (t) => {
  const odd: [RegExp, ...unknown[]][] = [
    [/header of type image/, { type: 'HEADER', format: 'IMAGE' }, body('x')],
    [/header of type document/, { type: 'HEADER', format: 'DOCUMENT' }, body('x')],
    [/header has more than one variable/, { type: 'HEADER', format: 'TEXT', text: '{{1}} {{2}}' }],
    [/component of type carousel/, body('x'), { type: 'CAROUSEL' }],
    [/component of type body/, body('x'), body('y')],
    [/component of type unknown/, null],
    [/component of type unknown/, 'BODY'],
    [/button of type flow/, body('x'), buttons({ type: 'FLOW' })],
    [/button of type otp/, body('x'), buttons({ type: 'OTP' })],
    [/button of type unknown/, body('x'), buttons(null)],
    [/button has more than one variable/, body('x'), buttons(url('https://{{1}}/{{2}}'))],
    [/body has a named parameter/, body('Hello {{name}}')],
    [/body has a named parameter/, body('Hello {{0}}')],
    [/body has a named parameter/, body('Hello {{}}')],
    [/body aren't numbered without gaps/, body('Hello {{2}}')],
    [/body aren't numbered without gaps/, body('Hello {{1}} {{9999}}')],
  ]
  for (const [words, ...components] of odd) {
    const { slots, unsupported } = shape(...components)
    t.match(unsupported, words)
    t.strictSame(slots, [])
  }
  t.match(shapeOf({ parameter_format: 'named', components: [body('x')] }).unsupported, /named/)
})

t.test('any object at all has a shape', async () => {
  const type = fc.constantFrom('HEADER', 'BODY', 'BUTTONS', 'FOOTER', 'x', 5, null)
  const text = fc.oneof(fc.string(), fc.constant('{{1}} {{2}}'), fc.constant(7))
  const component = fc.record(
    { type, text, format: text, url: text, buttons: fc.anything() },
    { requiredKeys: [] },
  )
  fc.assert(
    fc.property(fc.array(fc.oneof(component, fc.anything())), fc.anything(), (components, format) => {
      const { slots, url_buttons } = shapeOf({ components, parameter_format: format })
      return slots.filter((slot) => slot.startsWith('url:')).length === url_buttons.length
    }),
  )
  shapeOf({ components: [body('{{'.repeat(100_000))] })
  shapeOf({ components: [body('{{1}}'.repeat(20_000))] })
})

t.test('parameters must fill the slots and nothing else', async (t) => {
  const at = (problem: RegExp) => ({ field: 'parameters', problem })
  t.equal(parametersProblem(['body:1'], { 'body:1': 'Ana' }), null)
  t.match(parametersProblem(['body:1', 'url:1'], { 'body:1': 'Ana' }), at(/Missing: url:1/))
  t.match(parametersProblem([], { 'body:1': 'Ana' }), at(/"body:1": .* no variables/))
  t.match(parametersProblem(['body:1'], { 'body:1': 'Ana', toString: 'x' }), at(/"toString"/))
  t.match(parametersProblem(['body:1'], JSON.parse('{"__proto__":"x"}')), at(/Missing: body:1/))
})

t.test('a value is 1 to 1024 characters on one line, without more than four spaces in a row', async (t) => {
  const problem = (value: string) => parametersProblem(['body:1'], { 'body:1': value })
  const at = (problem: RegExp) => ({ field: 'parameters["body:1"]', problem })
  for (const value of ['a', '😀'.repeat(1_024), 'a    b']) t.equal(problem(value), null)
  t.match(problem(''), at(/empty/))
  t.match(problem('a'.repeat(1_025)), at(/1024/))
  for (const between of '\n\r\t\v\f\u0085\u2028\u2029')
    t.match(problem(`a${between}b`), at(/line breaks or tabs/))
  t.match(problem('a     b'), at(/four spaces/))
})

t.test('what does not fit is named: the slots that are missing, or those that there are', async (t) => {
  const slots = ['header:1', 'body:1']
  t.match(parametersProblem(slots, {}), { problem: /Missing: header:1, body:1/ })
  t.match(parametersProblem(slots, { 'header:1': 'a', 'body:1': 'b', ['x'.repeat(65)]: 'c' }), {
    problem: new RegExp(`"${'x'.repeat(64)}": its variables are header:1, body:1`),
  })
})

t.test('a refusal says where: in the header, or in a button', async (t) => {
  t.equal(
    shape({ type: 'HEADER', text: '{{who}}' }, body('x')).unsupported,
    'the header has a named parameter',
  )
  t.equal(
    shape(body('x'), buttons(url('https://a.b/{{who}}'))).unsupported,
    'the button has a named parameter',
  )
  for (const name of ['a1', '1a', ''])
    t.equal(shape(body(`{{${name}}}`)).unsupported, 'the body has a named parameter')
  t.strictSame(shape(body('{{ 1 }}')).slots, ['body:1'])
})

t.test('a list that is none counts as empty', async (t) => {
  const none = { slots: [], url_buttons: [], unsupported: null }
  t.strictSame(shapeOf({ components: 'BODY' }), none)
  t.strictSame(shape({ type: 'HEADER' }, { type: 'BODY' }).slots, [], 'nor has a text that is none a slot')
  t.strictSame(shape(body('x'), { type: 'BUTTONS', buttons: { type: 'URL' } }), none)
})
