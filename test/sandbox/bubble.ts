/**
 * A WhatsApp template message as a phone would show it: header, text, footer and buttons, filled. Pure.
 * Promises: a template that the sandbox does not know is shown by its name and parameters, never guessed at.
 */
import type { CloudComponent, CloudMessage, CloudTemplate, Json } from './whatsapp.ts'

export type Bubble = {
  id: string
  to: string
  time: string
  received_at: string
  status: string
  template: string
  header: string
  body: string
  footer: string
  buttons: { text: string; url: string }[]
  /** Our own id of the message; '' when it came without one. */
  ref: string
}

const list = (value: unknown): Json[] => (Array.isArray(value) ? (value as Json[]) : [])
const words = (value: unknown): string => (typeof value === 'string' ? value : '')
const upper = (value: unknown): string => words(value).toUpperCase()

const fill = (text: string, { parameters = [] }: CloudComponent = {}): string =>
  text.replaceAll(/\{\{(\d+)\}\}/g, (slot, place) => parameters[Number(place) - 1]?.text ?? slot)

const given = (
  components: readonly CloudComponent[],
  type: string,
  index?: number,
): CloudComponent | undefined =>
  components.find(
    (one) => upper(one.type) === type && (index === undefined || Number(one.index ?? 0) === index),
  )

function filled(template: Json, components: readonly CloudComponent[]) {
  const part = (type: string): Json | undefined =>
    list(template.components).find((one) => upper(one.type) === type)
  return {
    header: fill(words(part('HEADER')?.text), given(components, 'HEADER')),
    body: fill(words(part('BODY')?.text), given(components, 'BODY')),
    footer: words(part('FOOTER')?.text),
    buttons: list(part('BUTTONS')?.buttons).map((button, index) => ({
      text: words(button.text),
      url: fill(words(button.url), given(components, 'BUTTON', index)),
    })),
  }
}

/** The message as a phone shows it. @param templates the provider's template objects that are known. */
export function bubbleOf(message: CloudMessage, templates: readonly Json[]): Bubble {
  const { id, received_at, status, body } = message
  const { name, components = [] }: CloudTemplate = body.template ?? {}
  const known = templates.find((template) => template.name === name)
  const parameters = components.flatMap((one) => (one.parameters ?? []).map(({ text = '' }) => text))
  const shown = known
    ? filled(known, components)
    : { header: words(name), body: parameters.join('\n'), footer: '', buttons: [] }
  return {
    ...shown,
    id,
    received_at,
    time: received_at.slice(11, 16),
    to: String(body.to ?? ''),
    status,
    template: words(name),
    ref: String(body.biz_opaque_callback_data ?? '').split(':')[1] ?? '',
  }
}
