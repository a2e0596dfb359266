/** Shows a WhatsApp template as the recipient's phone shows it. Pure. */
import { text } from './cell.ts'
import type { Section } from './section.ts'

type Component = { type?: unknown; text?: unknown; buttons?: unknown; example?: unknown }

const listed = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : [])
const words = (value: unknown): string => (typeof value === 'string' ? value : '')

/** The texts of a template's components. Variables are like {{1}}. */
function readParts({ components }: Readonly<Record<string, unknown>>) {
  const all = listed(components).map((each): Component => Object(each))
  const of = (type: string) => all.find((each) => each.type === type)
  const buttons = listed(of('BUTTONS')?.buttons).map((button) => {
    const { text: label, url } = Object(button)
    return { label: words(label), url: words(url) }
  })
  return { header: of('HEADER'), body: of('BODY'), footer: of('FOOTER'), buttons }
}

/** Returns the sample values of a component by its variables. Named variables have their own list. */
function readSamples(part: Component | undefined): ReadonlyMap<string, string> {
  const example = Object(part?.example) as Record<string, unknown>
  const named = listed(example.body_text_named_params ?? example.header_text_named_params)
  const places = listed(example.header_text ?? listed(example.body_text)[0])
  return new Map([
    ...named.map((each) => [words(Object(each).param_name), words(Object(each).example)] as const),
    ...places.map((value, at) => [String(at + 1), words(value)] as const),
  ])
}

const filledWith = (part: Component | undefined, values: (name: string) => string | undefined): string =>
  words(part?.text).replaceAll(/\{\{(\w+)\}\}/g, (variable, name: string) => values(name) || variable)

/**
 * Builds the section. Empty for a template without texts.
 * @param parameters the values of a message by variable, such as `body:1`. Without them, it shows samples.
 */
export function bubbleSection(
  definition: Readonly<Record<string, unknown>>,
  title: string,
  parameters?: Readonly<Record<string, string>>,
): Section[] {
  const { header, body, footer, buttons } = readParts(definition)
  const shown = (part: Component | undefined, place: string): string => {
    const samples = readSamples(part)
    return filledWith(part, (name) => (parameters ? parameters[`${place}:${name}`] : samples.get(name)))
  }
  const bubble = {
    header: shown(header, 'header'),
    body: shown(body, 'body'),
    footer: words(footer?.text),
    buttons: buttons.map(({ label }) => label),
  }
  return bubble.body === '' && bubble.header === '' ? [] : [{ kind: 'bubble', title, ...bubble }]
}

/** Returns the body of a template with its sample values, or ''. */
export function sampleBody(definition: Readonly<Record<string, unknown>>): string {
  const { body } = readParts(definition)
  const samples = readSamples(body)
  return filledWith(body, (name) => samples.get(name))
}

/** Builds facts with the texts and URLs of a template that have variables. */
export function textFacts(definition: Readonly<Record<string, unknown>>): Section[] {
  const { header, body, buttons } = readParts(definition)
  const urls = buttons.map(({ label, url }) => [`Button “${label}”`, url] as const)
  const facts = [['Header', words(header?.text)] as const, ['Body', words(body?.text)] as const, ...urls]
    .filter(([, value]) => value.includes('{{'))
    .map(([label, value]) => ({ label, cell: text(value) }))
  return facts.length === 0 ? [] : [{ kind: 'facts', title: 'Text with variables', facts }]
}
