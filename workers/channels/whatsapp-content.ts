/** Fills a template with a message's values. A variable that the template has gained since is left empty. Pure. */
import type { OutgoingWhatsappRow } from '../../db/messages/whatsapp/messages.sql.ts'
import type { TemplateParts } from '../../db/messages/whatsapp/template.ts'
import type { NamedValue, OutgoingHeader, OutgoingWhatsapp } from '../providers/whatsapp/provider.ts'

type Row = Pick<OutgoingWhatsappRow, 'slots' | 'url_buttons' | 'parts' | 'parameters'>
type Content = Pick<OutgoingWhatsapp, 'header' | 'body' | 'buttons'>

/** The parts of a template that only 0.1.0 has read. It can only have texts and URLs. */
function partsWithoutShape({ slots, url_buttons }: Row): TemplateParts {
  return {
    header: slots.includes('header:1') ? { kind: 'text' } : null,
    body: null,
    buttons: url_buttons.map((place, index) => ({ slot: `url:${index + 1}`, place, kind: 'url', own: 0 })),
    names: {},
    one_time: false,
  }
}

export function contentOf(row: Row): Content {
  const { slots, parameters } = row
  const parts = row.parts ?? partsWithoutShape(row)
  const filled = (slot: string): string => parameters[slot] ?? ''
  const named = (slot: string): NamedValue => ({ name: parts.names[slot] ?? null, value: filled(slot) })
  return {
    header: parts.header && fillHeader(parts.header.kind, { filled, named }),
    body: slots.filter((slot) => slot.startsWith('body:')).map(named),
    buttons: parts.buttons.map(({ slot, place, kind }) => ({ kind, place, ...named(slot) })),
  }
}

function fillHeader(
  kind: NonNullable<TemplateParts['header']>['kind'],
  { filled, named }: { filled: (slot: string) => string; named: (slot: string) => NamedValue },
): OutgoingHeader {
  if (kind === 'text') return { kind, text: named('header:1') }
  if (kind === 'location')
    return {
      kind,
      ...{ latitude: filled('header:1'), longitude: filled('header:2') },
      ...{ name: filled('header:3'), address: filled('header:4') },
    }
  return { kind, url: filled('header:1'), file_name: kind === 'document' ? filled('header:2') : null }
}
