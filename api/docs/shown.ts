/**
 * Fills values that depend on the request into the documentation: the service's URL, the domain to send from,
 * and future times. Examples and guides have placeholders for them, and shell variables for IDs. Pure.
 */
import { exampleMoment } from '../../db/validation/moments.ts'

/** `home` is the address of the service, `domain` what examples send from. */
export type Shown = { home: string; domain: string; now: Date }

const HOME = '{{home}}'
export const DOMAIN = '{{domain}}'
export const LATER = '{{later}}'
const DAY_LATER = '{{day_later}}'

/** An ID in an example, such as $TOPIC_ID. */
const VARIABLE = /\$([A-Z_]+)\b/g

/** Far enough for a page that stays open for days. The limit for a message is 90. */
const DAYS_AHEAD = 14

export const fill = (text: string, { home, domain, now }: Shown): string =>
  text
    .replaceAll(HOME, home)
    .replaceAll(DOMAIN, domain)
    .replaceAll(LATER, exampleMoment(now, DAYS_AHEAD))
    .replaceAll(DAY_LATER, exampleMoment(now, DAYS_AHEAD + 1))

/** Returns the names of the variables in an example, without duplicates. */
export const variablesIn = (example: unknown): string[] => [
  ...new Set([...(JSON.stringify(example) ?? '').matchAll(VARIABLE)].map(([, name = '']) => name)),
]

/** Fills the placeholders of an example. @param id returns the value of an ID. The default is its variable */
export function fillExample<T>(example: T, shown: Shown, id = (name: string): string => `$${name}`): T {
  if (example === undefined) return example
  const text = fill(JSON.stringify(example), shown)
  return JSON.parse(text.replaceAll(VARIABLE, (_, name: string) => id(name)))
}
