/**
 * Writes a template's parameters in the Cloud API's form. Quick replies and static buttons need no component.
 * https://developers.facebook.com/documentation/business-messaging/whatsapp/templates/components
 */
import type { NamedValue, OutgoingHeader, OutgoingWhatsapp } from './provider.ts'

const toText = ({ name, value }: NamedValue) => ({
  type: 'text',
  ...(name === null ? {} : { parameter_name: name }),
  text: value,
})

function headerParameter(header: OutgoingHeader) {
  if (header.kind === 'text') return toText(header.text)
  const { kind: type, ...given } = header
  if (!('url' in given)) return { type, location: given }
  const { url: link, file_name: filename } = given
  return { type, [type]: { link, ...(filename === null ? {} : { filename }) } }
}

export function toComponents({
  header,
  body,
  buttons,
}: Pick<OutgoingWhatsapp, 'header' | 'body' | 'buttons'>) {
  return [
    ...(header === null ? [] : [{ type: 'header', parameters: [headerParameter(header)] }]),
    ...(body.length > 0 ? [{ type: 'body', parameters: body.map(toText) }] : []),
    ...buttons.map(({ kind, place, ...given }) => ({
      type: 'button',
      sub_type: kind === 'url' ? 'url' : 'copy_code',
      index: String(place),
      parameters: [kind === 'url' ? toText(given) : { type: 'coupon_code', coupon_code: given.value }],
    })),
  ]
}
