/**
 * What a WhatsApp template takes: its slots, derived from the provider's own object. Pure.
 * Promises: `header:1`, `body:1…n`, `url:1…n`, each URL button with its true place among the buttons. A template that
 * cannot be sent says why in words; nothing is guessed. DECISIONS: Template states, Parameters.
 */

import type { FieldError } from '../../errors.ts'
import { fill } from '../../fill.ts'
import { isObject } from '../../validation/fields.ts'
import { codePoints } from '../../validation/strings.ts'
import { TEXTS } from './texts.ts'

/** `url_buttons[k - 1]` is the place of `url:k`. `unsupported`: why it can't be sent, null when it can. */
export type TemplateShape = { slots: string[]; url_buttons: number[]; unsupported: string | null }

type Json = Readonly<Record<string, unknown>>
type Part = { slots: string[]; url_buttons?: number[] }

/** Why a template can't be sent; thrown and caught in this file only. */
class Unsupported extends Error {}

/** A word of the object, upper case, for comparison. */
const word = (value: unknown): string => (typeof value === 'string' ? value.toUpperCase() : '')

// They take no parameters when a template is sent.
const STATIC_BUTTONS = new Set(['QUICK_REPLY', 'PHONE_NUMBER'])
const LONGEST_VALUE = 1024

/** How many `{{1}}…{{n}}` a text has. @throws Unsupported for names, or numbers that leave a gap. */
function slotCount(text: unknown, where: string): number {
  if (typeof text !== 'string') return 0
  const names = [...text.matchAll(/\{\{([^{}]*)\}\}/g)].map(([, name = '']) => name.trim())
  const named = names.find((name) => !/^[1-9]\d{0,3}$/.test(name))
  if (named !== undefined) throw new Unsupported(`the ${where} has a named parameter`)
  const numbers = new Set(names.map(Number))
  if (Math.max(0, ...numbers) !== numbers.size)
    throw new Unsupported(`the variables of the ${where} aren't numbered without gaps`)
  return numbers.size
}

const numbered = (scope: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${scope}:${index + 1}`)

function headerPart(component: Json): Part {
  const format = word(component.format) || 'TEXT'
  if (format !== 'TEXT') throw new Unsupported(`it has a header of type ${format.toLowerCase()}`)
  const count = slotCount(component.text, 'header')
  if (count > 1) throw new Unsupported('the header has more than one variable')
  return { slots: numbered('header', count) }
}

/** A template of one-time passwords as it is created, before the provider writes out its body and its button's URL. */
const isOneTimePassword = ({ category }: Json): boolean => word(category) === 'AUTHENTICATION'

/** The provider writes the body of a one-time password itself: the code is its one slot. */
const bodyPart = ({ text }: Json, definition: Json): Part => ({
  slots: numbered('body', text === undefined && isOneTimePassword(definition) ? 1 : slotCount(text, 'body')),
})

function buttonsPart(component: Json, definition: Json): Part {
  const buttons = Array.isArray(component.buttons) ? component.buttons : []
  const url_buttons = buttons.flatMap((button: unknown, place): number[] => {
    const type = isObject(button) ? word(button.type) : ''
    if (STATIC_BUTTONS.has(type)) return []
    // It is sent as a URL with one slot, whichever way the code gets from it into the recipient's program.
    if (type === 'OTP' && isOneTimePassword(definition)) return [place]
    if (type !== 'URL' || !isObject(button)) {
      throw new Unsupported(`it has a button of type ${type.toLowerCase() || 'unknown'}`)
    }
    const count = slotCount(button.url, 'button')
    if (count > 1) throw new Unsupported('a button has more than one variable')
    return count === 1 ? [place] : []
  })
  return { slots: numbered('url', url_buttons.length), url_buttons }
}

const PARTS: Readonly<Record<string, (component: Json, definition: Json) => Part>> = {
  HEADER: headerPart,
  BODY: bodyPart,
  FOOTER: () => ({ slots: [] }),
  BUTTONS: buttonsPart,
}
const ORDER = Object.keys(PARTS)

function partsOf(definition: Json): Part[] {
  if (word(definition.parameter_format) === 'NAMED') throw new Unsupported('it has named parameters')
  const components: unknown[] = Array.isArray(definition.components) ? definition.components : []
  const types = components.map((component) => (isObject(component) ? word(component.type) : ''))
  const odd = types.find((type, index) => !ORDER.includes(type) || types.indexOf(type) !== index)
  if (odd !== undefined) throw new Unsupported(`it has a component of type ${odd.toLowerCase() || 'unknown'}`)
  return ORDER.flatMap((type) => {
    const component = components[types.indexOf(type)]
    return isObject(component) ? (PARTS[type]?.(component, definition) ?? []) : []
  })
}

export function shapeOf(definition: Json): TemplateShape {
  try {
    const parts = partsOf(definition)
    return {
      slots: parts.flatMap(({ slots }) => slots),
      url_buttons: parts.flatMap(({ url_buttons }) => url_buttons ?? []),
      unsupported: null,
    }
  } catch (error) {
    if (!(error instanceof Unsupported)) throw error
    return { slots: [], url_buttons: [], unsupported: error.message }
  }
}

function valueProblem(value: string): string | null {
  if (value === '') return 'must not be empty'
  if (codePoints(value) > LONGEST_VALUE) return `must have at most ${LONGEST_VALUE} characters`
  if (/[\n\r\t\v\f\u0085\u2028\u2029]/.test(value)) return 'must not contain line breaks or tabs'
  if (/ {5}/.test(value)) return 'must not contain more than four spaces in a row'
  return null
}

/** What is wrong with the parameters for these slots; null when they fit. DECISIONS: Parameters. */
export function parametersProblem(
  slots: readonly string[],
  parameters: Readonly<Record<string, string>>,
): FieldError | null {
  const missing = slots.filter((slot) => !Object.hasOwn(parameters, slot))
  if (missing.length > 0)
    return { field: 'parameters', problem: fill(TEXTS.missingVariables, { names: missing.join(', ') }) }
  for (const [name, value] of Object.entries(parameters)) {
    if (!slots.includes(name)) {
      const known =
        slots.length === 0 ? 'the template has no variables' : `its variables are ${slots.join(', ')}`
      return {
        field: 'parameters',
        problem: fill(TEXTS.unknownParameter, { key: JSON.stringify(name.slice(0, 64)), known }),
      }
    }
    const problem = valueProblem(value)
    if (problem) return { field: `parameters[${JSON.stringify(name)}]`, problem }
  }
  return null
}
