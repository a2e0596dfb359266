/**
 * Derives a WhatsApp template's variables from the provider's object, and fills them when it is sent. Pure.
 * https://developers.facebook.com/documentation/business-messaging/whatsapp/templates/components DECISIONS: Template
 * states, Parameters.
 */
import { isObject } from '../../validation/fields.ts'
import { codePoints } from '../../validation/strings.ts'

const MEDIA = ['image', 'video', 'document'] as const
export type MediaKind = (typeof MEDIA)[number]

/** A text with variables: its length without them, how often each occurs, and the maximum length when filled. */
export type TextPart = { own: number; times: Readonly<Record<string, number>>; limit: number }

/**
 * A button with a variable: its position among all buttons, from 0. `own`: the length of its URL without the
 * variable.
 */
type ButtonPart = { slot: string; place: number; kind: 'url' | 'code'; own: number }

/** The parts of a template that values fill. */
export type TemplateParts = {
  header: { kind: 'text' | MediaKind | 'location'; text?: TextPart } | null
  body: TextPart | null
  buttons: readonly ButtonPart[]
  /** The names of variables, if the template names them. */
  names: Readonly<Record<string, string>>
  /** True for a one-time password. */
  one_time: boolean
}

/** `url_buttons[k - 1]` is the position of `url:k` in 0.1.0. `unsupported`: why it can't be sent, or null. */
export type TemplateShape = {
  slots: string[]
  url_buttons: number[]
  parts: TemplateParts
  unsupported: string | null
}

type Json = Readonly<Record<string, unknown>>

/** Why a template can't be sent. Thrown and caught in this file only. */
class Unsupported extends Error {}

/** Returns a word of the object in upper case, for comparison. */
const word = (value: unknown): string => (typeof value === 'string' ? value.toUpperCase() : '')

// Buttons without parameters.
const STATIC_BUTTONS = new Set(['QUICK_REPLY', 'PHONE_NUMBER'])
const LONGEST_HEADER = 60
const LONGEST_BODY = 1_024

const SLOT = /\{\{([^{}]*)\}\}/g
const POSITION = /^[1-9]\d{0,3}$/
const NAME = /^[a-z_][a-z0-9_]{0,63}$/i

/** A text's variables in order: by number, or by their first occurrence if they have names. */
type Slots = { slots: string[]; names: Record<string, string>; text: TextPart }

/** @throws Unsupported for invalid names, or a gap in the numbers. */
function slotsIn(
  given: unknown,
  { scope, where, limit }: { scope: string; where: string; limit: number },
): Slots {
  const text = typeof given === 'string' ? given : ''
  const found = [...text.matchAll(SLOT)].map(([, name = '']) => name.trim())
  const isNamed = found.some((name) => !POSITION.test(name))
  const distinct = [...new Set(found)]
  if (isNamed && !distinct.every((name) => NAME.test(name)))
    throw new Unsupported(`the ${where} has an invalid variable, or mixes numbered and named variables`)
  const ordered = isNamed ? distinct : distinct.sort((one, other) => Number(one) - Number(other))
  if (!isNamed && Number(ordered.at(-1) ?? 0) !== ordered.length)
    throw new Unsupported(`the numbers of the ${where}'s variables have a gap`)
  const slotOf = new Map(ordered.map((name, index) => [name, `${scope}:${index + 1}`]))
  const slots = [...slotOf.values()]
  const counts = Map.groupBy(found, (name) => slotOf.get(name) ?? '')
  return {
    slots,
    names: isNamed ? Object.fromEntries([...slotOf].map(([name, slot]) => [slot, name])) : {},
    text: {
      own: codePoints(text.replace(SLOT, '')),
      times: Object.fromEntries([...counts].map(([slot, each]) => [slot, each.length])),
      limit,
    },
  }
}

type Part = { slots: string[] } & Partial<TemplateParts>

function headerPart(component: Json): Part {
  const format = (word(component.format) || 'TEXT').toLowerCase()
  const media = MEDIA.find((kind) => kind === format)
  if (media)
    return { slots: ['header:1', ...(media === 'document' ? ['header:2'] : [])], header: { kind: media } }
  if (format === 'location')
    return { slots: ['header:1', 'header:2', 'header:3', 'header:4'], header: { kind: 'location' } }
  if (format !== 'text') throw new Unsupported(`it has a header of the kind ${format}`)
  const { slots, names, text } = slotsIn(component.text, {
    ...{ scope: 'header', where: 'header', limit: LONGEST_HEADER },
  })
  if (slots.length > 1) throw new Unsupported('the header has more than one variable')
  return { slots, names, header: slots.length === 0 ? null : { kind: 'text', text } }
}

/** True for a one-time password template before the provider fills in its body and its button's URL. */
const isOneTimePassword = ({ category }: Json): boolean => word(category) === 'AUTHENTICATION'

/** The provider fills in the body of a one-time password. The code is its only variable. */
function bodyPart({ text: given }: Json, definition: Json): Part {
  const written = given === undefined && isOneTimePassword(definition) ? '{{1}}' : given
  const { slots, names, text } = slotsIn(written, { scope: 'body', where: 'body', limit: LONGEST_BODY })
  return { slots, names, body: slots.length === 0 ? null : text }
}

/**
 * Returns a button that needs a value, with its variable's name if it has one. Null for a static button.
 * @throws Unsupported for others.
 */
function buttonPart(
  button: unknown,
  definition: Json,
): { part: Pick<ButtonPart, 'kind' | 'own'>; name?: string | undefined } | null {
  const type = isObject(button) ? word(button.type) : ''
  if (STATIC_BUTTONS.has(type)) return null
  // It is sent as a URL with one variable, whichever way the code gets into the recipient's app.
  if (type === 'OTP' && isOneTimePassword(definition)) return { part: { kind: 'url', own: 0 } }
  if (type === 'COPY_CODE') return { part: { kind: 'code', own: 0 } }
  if (type !== 'URL' || !isObject(button))
    throw new Unsupported(`it has a button of the kind ${type.toLowerCase() || 'unknown'}`)
  const { slots, names, text } = slotsIn(button.url, { scope: 'url', where: 'button', limit: 0 })
  if (slots.length > 1) throw new Unsupported('a button has more than one variable')
  return slots.length === 1 ? { part: { kind: 'url', own: text.own }, name: Object.values(names)[0] } : null
}

function buttonsPart(component: Json, definition: Json): Part {
  const given: unknown[] = Array.isArray(component.buttons) ? component.buttons : []
  const counts = { url: 0, code: 0 }
  const names: Record<string, string> = {}
  const buttons = given.flatMap((button, place): ButtonPart[] => {
    const found = buttonPart(button, definition)
    if (found === null) return []
    const { part, name } = found
    counts[part.kind] += 1
    const slot = `${part.kind}:${counts[part.kind]}`
    if (name !== undefined) names[slot] = name
    return [{ ...part, place, slot }]
  })
  if (counts.code > 1) throw new Unsupported('it has more than one copy-code button')
  const ordered = [...buttons].sort(
    (one, other) => Number(one.kind === 'code') - Number(other.kind === 'code'),
  )
  return { slots: ordered.map(({ slot }) => slot), names, buttons: ordered }
}

const PARTS: Readonly<Record<string, (component: Json, definition: Json) => Part>> = {
  HEADER: headerPart,
  BODY: bodyPart,
  FOOTER: () => ({ slots: [] }),
  BUTTONS: buttonsPart,
}
const ORDER = Object.keys(PARTS)

function parseParts(definition: Json): Part[] {
  const components: unknown[] = Array.isArray(definition.components) ? definition.components : []
  const types = components.map((component) => (isObject(component) ? word(component.type) : ''))
  const odd = types.find((type, index) => !ORDER.includes(type) || types.indexOf(type) !== index)
  if (odd !== undefined) {
    const count = ORDER.includes(odd) ? 'more than one' : 'a'
    throw new Unsupported(`it has ${count} component of the kind ${odd.toLowerCase() || 'unknown'}`)
  }
  return ORDER.flatMap((type) => {
    const component = components[types.indexOf(type)]
    return isObject(component) ? (PARTS[type]?.(component, definition) ?? []) : []
  })
}

/** True for templates that 0.1.0 can't send. Its processes neither accept nor deliver messages of such templates. */
export function hasNewParts(parts: TemplateParts | null): boolean {
  if (parts === null) return false
  const { header, buttons, names } = parts
  const isText = header === null || header.kind === 'text'
  return !isText || buttons.some(({ kind }) => kind === 'code') || Object.keys(names).length > 0
}

const NOTHING: TemplateParts = { header: null, body: null, buttons: [], names: {}, one_time: false }

export function toShape(definition: Json): TemplateShape {
  try {
    const found = parseParts(definition)
    const parts: TemplateParts = {
      header: found.find(({ header }) => header)?.header ?? null,
      body: found.find(({ body }) => body)?.body ?? null,
      buttons: found.flatMap(({ buttons }) => buttons ?? []),
      names: Object.assign({}, ...found.map(({ names }) => names)),
      one_time: isOneTimePassword(definition),
    }
    return {
      slots: found.flatMap(({ slots }) => slots),
      url_buttons: parts.buttons.flatMap(({ kind, place }) => (kind === 'url' ? [place] : [])),
      parts,
      unsupported: null,
    }
  } catch (error) {
    if (!(error instanceof Unsupported)) throw error
    return { slots: [], url_buttons: [], parts: NOTHING, unsupported: error.message }
  }
}
