/** Checks the values of a template's parameters. Lengths are Meta's. Pure. DECISIONS: Parameters. */
import type { FieldError } from '../../errors.ts'
import { codePoints } from '../../validation/strings.ts'
import type { TemplateParts, TextPart } from './template.ts'

const LONGEST_VALUE = 1_024
const LONGEST_URL = 2_000
const LONGEST_MEDIA_URL = 2_048
const LONGEST_COUPON_CODE = 20
const LONGEST_PASSWORD = 15

function valueProblem(value: string, most: number): string | null {
  if (value === '') return 'must not be empty'
  if (codePoints(value) > most) return `must have at most ${most} characters`
  if (/[\n\r\t\v\f\u0085\u2028\u2029]/.test(value)) return 'must not contain line breaks or tabs'
  if (/ {5}/.test(value)) return 'must not contain more than four spaces in a row'
  return null
}

function mediaProblem(value: string): string | null {
  const isHttps = /^https:\/\/[^\s]+$/i.test(value) && URL.canParse(value)
  return isHttps ? null : 'must be an https URL without spaces'
}

/** @param bound the maximum of the absolute value, in degrees. */
const degreesProblem = (bound: number) => (value: string) =>
  /^-?\d{1,3}(\.\d{1,20})?$/.test(value) && Math.abs(Number(value)) <= bound
    ? null
    : `must be a number of degrees from -${bound} to ${bound}, such as 37.483`

type Check = { most?: number; form?: (value: string) => string | null }
type HeaderKind = NonNullable<TemplateParts['header']>['kind']

const MEDIA: Check = { most: LONGEST_MEDIA_URL, form: mediaProblem }
const ANY: Check = { most: LONGEST_VALUE }
/** Only the length of the complete text counts. */
const IN_TEXT: Check = {}

const HEADERS: Readonly<Record<HeaderKind, Readonly<Record<string, Check>>>> = {
  text: { 'header:1': IN_TEXT },
  image: { 'header:1': MEDIA },
  video: { 'header:1': MEDIA },
  document: { 'header:1': MEDIA },
  location: {
    'header:1': { most: 24, form: degreesProblem(90) },
    'header:2': { most: 25, form: degreesProblem(180) },
  },
}

/** @param parts null for a template that only 0.1.0 has read. */
function findCheck(slot: string, parts: TemplateParts | null): Check {
  if (parts === null) return ANY
  const { header, body, buttons, one_time } = parts
  const button = buttons.find((each) => each.slot === slot)
  if (button?.kind === 'code') return { most: LONGEST_COUPON_CODE }
  if (button) return { most: one_time ? LONGEST_PASSWORD : LONGEST_URL - button.own }
  if (body && slot in body.times) return one_time ? { most: LONGEST_PASSWORD } : IN_TEXT
  return (header && HEADERS[header.kind][slot]) ?? ANY
}

/** Returns an error about the longest value if a filled text is too long, or null. */
function lengthProblem(where: string, part: TextPart | undefined | null, values: Values): FieldError | null {
  if (!part) return null
  const lengths = Object.entries(part.times).map(([slot, times]) => {
    const length = codePoints(values[slot] ?? '')
    return { slot, length, filled: times * length }
  })
  const filled = lengths.reduce((sum, each) => sum + each.filled, part.own)
  const [longest] = lengths.sort((one, other) => other.length - one.length)
  if (filled <= part.limit || !longest) return null
  const problem = `must be shorter. With it, the ${where} would have ${filled} characters, and at most ${part.limit} are allowed`
  return { field: `parameters[${JSON.stringify(longest.slot)}]`, problem }
}

type Values = Readonly<Record<string, string>>

export function parametersProblem(
  slots: readonly string[],
  parts: TemplateParts | null,
  parameters: Values,
): FieldError | null {
  const missing = slots.filter((slot) => !Object.hasOwn(parameters, slot))
  if (missing.length > 0)
    return {
      field: 'parameters',
      problem: `must contain every variable of the template. Missing: ${missing.join(', ')}`,
    }
  for (const [name, value] of Object.entries(parameters)) {
    if (!slots.includes(name)) {
      const known =
        slots.length === 0
          ? 'The template has no variables'
          : `The template's variables are ${slots.join(', ')}`
      const unknown = JSON.stringify(name.slice(0, 64))
      return { field: 'parameters', problem: `has the unknown key ${unknown}. ${known}` }
    }
    const { most = Number.POSITIVE_INFINITY, form } = findCheck(name, parts)
    const problem = valueProblem(value, most) ?? form?.(value) ?? null
    if (problem) return { field: `parameters[${JSON.stringify(name)}]`, problem }
  }
  return (
    lengthProblem('header', parts?.header?.text, parameters) ?? lengthProblem('body', parts?.body, parameters)
  )
}
