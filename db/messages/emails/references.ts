/** Finds the domains, templates and contacts of emails, for many teams at once. DECISIONS: Order of errors. */

import type { CompiledVersion, Versions } from '../../content/templates/versions.ts'
import { fieldError, invalidField, type RequestError } from '../../errors.ts'
import { fill } from '../../fill.ts'
import type { Tx } from '../../postgres/pool.ts'
import { inOneList } from '../../validation/addressees.ts'
import { missingSlots, UNSUBSCRIBE_SLOT } from '../../validation/slots.ts'
import { LARGEST_PART } from '../../validation/strings.ts'
import { TEXTS } from '../texts.ts'
import type { EmailCall, EmailItem, EmailSender } from './call.ts'
import { partTooLarge } from './content.ts'
import { emailReferences, type Reference } from './emails.sql.ts'
import { bareRecipients } from './recipients.ts'
import type { UnsubscribeLinks } from './unsubscribe-token.ts'

type Template = { version_id: string; slots: readonly string[]; compiled: CompiledVersion | undefined }

/** The references of one team, by the names that emails use. */
export type References = {
  domains: Map<string, string>
  pending: Set<string>
  templates: Map<string, Template>
  contacts: Map<string, string>
  /** Creates unsubscribe links. Null: links can only come with the variables. */
  links: UnsubscribeLinks | null
}

/** Returns the identity of an email's only recipient, including cc and bcc. Null if it has several. */
export const soleRecipient = (item: EmailItem): string | null => {
  const [only, ...others] = bareRecipients(inOneList(item).to_emails).keys()
  return only !== undefined && others.length === 0 ? only : null
}

function named(calls: readonly EmailCall[], nameOf: (item: EmailItem) => string | null): Reference[] {
  const found = new Map<string, Reference>()
  for (const { sender, items } of calls) {
    for (const item of items) {
      const key = nameOf(item)
      if (key !== null) found.set(`${sender.team_id}/${key}`, { team_id: sender.team_id, key })
    }
  }
  return [...found.values()]
}

/** Finds the references of each team in one statement. */
export async function findReferences(
  { tx, versions, links = null }: { tx: Tx; versions: Versions; links?: UnsubscribeLinks | null },
  calls: readonly EmailCall[],
): Promise<Map<string, References>> {
  const rows = await emailReferences(tx, {
    domains: named(calls, (item) => item.from.domain),
    // A broadcast brings its version and its contacts along.
    templates: named(
      calls.filter(({ sender }) => !sender.version),
      (item) => item.template_id,
    ),
    contacts: named(calls, (item) => (item.contact_id === undefined ? soleRecipient(item) : null)),
  })
  const templates = rows.filter((row) => row.kind === 'template')
  const given = calls.flatMap(({ sender, items: [item] }) =>
    sender.version && item
      ? [{ ...sender.version, team_id: sender.team_id, template_id: item.template_id ?? '' }]
      : [],
  )
  const compiled = await versions(tx, [
    ...templates.map((row) => ({ team_id: row.team_id, id: row.version_id ?? '' })),
    ...given.map(({ team_id, version_id: id }) => ({ team_id, id })),
  ])
  const byTeam = new Map<string, References>()
  for (const { sender } of calls) {
    byTeam.set(sender.team_id, {
      domains: new Map(),
      pending: new Set(),
      templates: new Map(),
      contacts: new Map(),
      links,
    })
  }
  for (const row of rows) {
    const known = byTeam.get(row.team_id)
    if (row.kind === 'domain') known?.domains.set(row.key, row.id)
    if (row.kind === 'pending') known?.pending.add(row.key)
    if (row.kind === 'contact') known?.contacts.set(row.key, row.id)
    if (row.kind === 'template') {
      const { version_id, slots } = { version_id: row.version_id ?? '', slots: row.slots ?? [] }
      known?.templates.set(row.key, { version_id, slots, compiled: compiled.get(version_id) })
    }
  }
  for (const { team_id, template_id, version_id, slots } of given)
    byTeam.get(team_id)?.templates.set(template_id, { version_id, slots, compiled: compiled.get(version_id) })
  return byTeam
}

export const domainNotAllowed = (item: EmailItem, sender: EmailSender): RequestError =>
  fieldError('domain_not_allowed', `${item.path}from`, TEXTS.domainOfKey, { domain: sender.domain ?? '' })

/** Any ID of the right length, because all links of one address have the same length. */
const ANY_EMAIL = '00000000-0000-4000-8000-000000000000'
/** A URL that a List-Unsubscribe header can contain without encoding. */
const HEADER_URL = /^https?:\/\/[!-;=?-~]{1,900}$/

/**
 * Returns the variables that the template uses, including the unsubscribe link of an email to one stored contact
 * (DECISIONS: Unsubscribe link).
 */
export function resolveVariables(
  item: EmailItem,
  slots: readonly string[],
  { contacts, links }: References,
  email: { team_id: string; id?: string },
): Readonly<Record<string, string>> {
  const own = item.variables ?? {}
  const filled = slots.flatMap((slot) => (Object.hasOwn(own, slot) ? [[slot, own[slot] ?? ''] as const] : []))
  const isAsked = links !== null && slots.includes(UNSUBSCRIBE_SLOT)
  const person = isAsked ? soleRecipient(item) : null
  const isLinked = isAsked && person !== null && contacts.has(person)
  const link = isLinked ? [[UNSUBSCRIBE_SLOT, links({ id: ANY_EMAIL, ...email, person })] as const] : []
  return Object.fromEntries([...filled, ...link])
}

/** Returns the error of the variables for this template, or null. */
function variablesFault(
  { slots, compiled }: Template,
  variables: Readonly<Record<string, string>>,
  text: string | null,
) {
  const missing = missingSlots(slots, variables)
  if (missing.length > 0) return fill(TEXTS.missingVariables, { names: missing.join(', ') })
  if (compiled?.list_unsubscribe && !HEADER_URL.test(variables[UNSUBSCRIBE_SLOT] ?? '')) {
    return fill(TEXTS.badUnsubscribeUrl, { name: UNSUBSCRIBE_SLOT })
  }
  const large = compiled && partTooLarge(compiled, variables, text)
  return large ? fill(TEXTS.partTooLarge, { part: large, most: LARGEST_PART }) : null
}

/** Returns an error for an item's first upload that doesn't exist, or null. */
function missingUpload({ path, attachments = [] }: EmailItem): RequestError | null {
  for (const [index, file] of attachments.entries()) {
    if (!('missing' in file)) continue
    const problem = fill(TEXTS.noAttachment, { id: file.missing })
    return fieldError('not_found', `${path}attachments[${index}].attachment_id`, problem)
  }
  return null
}

/** Returns why the item can't be sent (DECISIONS: Order of errors), or null. */
export function referenceError(
  item: EmailItem,
  sender: EmailSender,
  references: References,
): RequestError | null {
  const { domains, pending, templates } = references
  const { path } = item
  const { domain } = item.from
  if (!domains.has(domain)) {
    const problem = pending.has(domain)
      ? fill(TEXTS.fromNotVerified, { domain })
      : fill(TEXTS.fromNotInTeam, { domain })
    return fieldError('from_domain_not_verified', `${path}from`, problem)
  }
  if (sender.domain !== null && sender.domain !== domain) return domainNotAllowed(item, sender)
  const template = item.template_id === null ? undefined : templates.get(item.template_id)
  if (item.template_id !== null && !template)
    return fieldError('not_found', `${path}template_id`, TEXTS.noTemplateOfField, { id: item.template_id })
  const missing = missingUpload(item)
  if (missing !== null) return missing
  if (!template) return null
  const variables = resolveVariables(item, template.slots, references, sender)
  const problem = variablesFault(template, variables, item.text)
  return problem === null ? null : invalidField(`${path}variables`, problem)
}
