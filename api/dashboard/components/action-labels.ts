/** Labels of audit log actions on pages. An unknown action, as of a later version, is shown as its code. Pure. */
import { prefixKind } from '../../../db/accounts/credentials/token.ts'
import type { Channel } from '../../../db/channels/channel.sql.ts'
import { CHANNELS } from '../../../db/channels/channels.sql.ts'

/** Returns the labels for messages and templates of a channel. */
const buildLabels = ({ name, noun, title }: Channel): Record<string, string> => ({
  [`${name}.cancel`]: `Cancelled a scheduled ${noun}`,
  [`${name}.open`]: `Read one ${noun}`,
  [`${name}.requeue`]: `Sent ${noun}s again`,
  [`${name}.reschedule`]: `Rescheduled one ${noun}`,
  [`${name}-template.add`]: `Added a ${title} template`,
  [`${name}-template.create`]: `Created a ${title} template`,
  [`${name}-template.status`]: `Changed the status of a ${title} template`,
  [`${name}-template.sync`]: `Synced the ${title} templates`,
})

/** Labels by action. They follow the user's name. */
const LABELS: Readonly<Record<string, string>> = {
  ...Object.assign({}, ...CHANNELS.map(buildLabels)),
  'audit.export': 'Exported the audit log',
  'broadcast.again': 'Sent a broadcast to contacts not reached before',
  'broadcast.cancel': 'Cancelled a broadcast',
  'broadcast.create': 'Created a broadcast',
  'broadcast.delete': 'Deleted a broadcast',
  'broadcast.export': 'Exported a broadcast’s recipients',
  'broadcast.pause': 'Paused a broadcast',
  'broadcast.resume': 'Resumed a broadcast',
  'broadcast.start': 'Submitted a broadcast',
  'broadcast.test': 'Sent a test of a broadcast',
  'broadcast.unschedule': 'Unscheduled a broadcast',
  'broadcast.update': 'Changed a broadcast',
  'contact.change': 'Changed a contact',
  'contact.create': 'Created a contact',
  'contact.delete': 'Deleted a contact',
  'contact.erase': 'Erased personal data',
  'contact.export': 'Exported contacts',
  'contact.import': 'Imported contacts',
  'contact.leave_topics': 'Unsubscribed a contact from topics',
  'contact.lift': 'Lifted a suppression',
  'suppression.lift': 'Lifted suppressions',
  'suppression.add': 'Added a suppression',
  'team.set': 'Changed a setting of the team',
  'contact.resubscribe': 'Resubscribed a contact',
  'contact.suppress': 'Suppressed an address',
  'contact.unsubscribe': 'Unsubscribed a contact',
  'domain.add': 'Added a domain',
  'domain.ed25519': 'Switched a domain’s Ed25519 key',
  'domain.ramp': 'Changed a domain’s ramp-up',
  'domain.rekey': 'Rotated a DKIM key',
  'domain.remove': 'Removed a domain',
  'domain.return-path': 'Switched a domain’s own return path',
  'domain.verify': 'Verified a domain',
  'email.delete': 'Deleted emails',
  'email.export': 'Exported emails',
  'email.file': 'Downloaded an attachment',
  'email.resend': 'Sent an email to another address',
  'import.open': 'Read an import',
  'job.stop': 'Stopped a background job',
  'key.create': 'Created an API key',
  'key.rotate': 'Rotated an API key',
  'key.revoke': 'Revoked an API key',
  'login.link': 'Created a sign-in link',
  'member.add': 'Set a member’s role',
  'member.end_sessions': 'Signed a member out of the team',
  'member.remove': 'Removed a member',
  'operator.add': 'Made a user an operator',
  'plan.load': 'Loaded the plans',
  'queue.pause': 'Paused a queue',
  'queue.redrive': 'Retried failed jobs',
  'queue.resume': 'Resumed a queue',
  'report.drop': 'Dropped delivery reports',
  'report.purge': 'Redacted stored reports',
  'report.read': 'Read a delivery report',
  'report.replay': 'Replayed delivery reports',
  search: 'Searched',
  'secret.reseal': 'Re-encrypted the stored secrets',
  'number.add': 'Added a WhatsApp number',
  'number.pause': 'Paused a WhatsApp number',
  'number.remove': 'Removed a WhatsApp number',
  'number.resume': 'Resumed a WhatsApp number',
  'number.set': 'Changed a WhatsApp number',
  'number.subscribe': 'Subscribed to the events of a WhatsApp number',
  'team.number': 'Changed the WhatsApp number of a team',
  'sender.check': 'Checked a sender',
  'sender.resume': 'Resumed a sender',
  'session.create': 'Created a session token',
  'session.revoke': 'Revoked a session token',
  'suppression.export': 'Exported suppressions',
  'suppression.import': 'Imported suppressions',
  'team.columns': 'Chose the contact columns',
  'team.create': 'Created the team',
  'team.plan': 'Changed the plan or its limits',
  'team.rename': 'Renamed the team',
  'team.resume': 'Resumed the team',
  'team.resume_bulk': 'Resumed broadcasts and batches',
  'team.suspend': 'Suspended the team',
  'template.create': 'Created a template',
  'template.delete': 'Deleted a template',
  'template.discard': 'Discarded a template’s draft',
  'template.draft': 'Saved a template’s draft',
  'template.publish': 'Published a template’s draft',
  'template.rename': 'Renamed a template',
  'template.update': 'Changed a template',
  'topic.create': 'Created a topic',
  'topic.delete': 'Deleted a topic',
  'topic.rename': 'Renamed a topic',
  'whatsapp.opt-in': 'Opted a recipient in to marketing',
  'whatsapp.opt-out': 'Opted a recipient out of marketing',
  'webhook.add': 'Added a webhook',
  'webhook.disable': 'Disabled a webhook',
  'webhook.enable': 'Enabled a webhook',
  'webhook.read': 'Read a webhook event',
  'webhook.remove': 'Removed a webhook',
  'webhook.replay': 'Sent past webhook events again',
  'webhook.requeue': 'Sent webhook events again',
  'webhook.rotate': 'Created a new webhook secret',
  'webhook.set': 'Changed a webhook',
  'webhook.test': 'Sent a test to a webhook',
}

/** More exact labels of actions, by a pattern for the detail of their entry. */
const VARIANTS: Readonly<Record<string, readonly [sign: RegExp, label: string][]>> = {
  'domain.ed25519': [
    [/^on$/, 'Turned on a domain’s Ed25519 key'],
    [/^off$/, 'Turned off a domain’s Ed25519 key'],
  ],
  'domain.return-path': [
    [/^on$/, 'Turned on a domain’s own return path'],
    [/^off$/, 'Turned off a domain’s own return path'],
  ],
  'member.add': [
    [/ → /, 'Changed a member’s role'],
    [/^/, 'Added a member'],
  ],
  // Entries of version 0.1.0 don't tell.
  'team.plan': [
    [/^was .*limits: /, 'Changed the plan and its limits'],
    [/^was /, 'Changed the plan'],
    [/^limits: /, 'Changed the limits'],
  ],
}

const START = 'broadcast.start'
const STARTS = { true: 'Scheduled a broadcast', false: 'Started a broadcast' } as const

/** The actor of the CLI, and its shown name. */
export const CLI = 'cli'
const COMMAND_LINE = 'command line'

/** The shown name of an API key or session token before its prefix. */
const CREDENTIAL_NAMES = { key: 'API key', session: 'session token' } as const

/** Names an actor on a page, so that the prefix of a credential is not taken for a user. */
export function actorName(actor: string): string {
  if (actor === CLI) return COMMAND_LINE
  const kind = prefixKind(actor)
  return kind === null ? actor : `${CREDENTIAL_NAMES[kind]} ${actor}`
}

/** Returns the actor with this shown name, or the text itself. */
export function findActor(words: string): string {
  const [actor = ''] = words.trim().split(' ').slice(-1)
  const asked = words.trim().toLowerCase()
  if (asked === COMMAND_LINE) return CLI
  return asked === actorName(actor).toLowerCase() ? actor : words
}

const actionLabel = (action: string): string => LABELS[action] ?? action

/** @param scheduled true if a start of a broadcast was for a later time. Undefined if unknown. */
export function entryLabel(
  { action, detail }: { action: string; detail: string },
  scheduled: boolean | undefined,
): string {
  if (action === START && scheduled !== undefined) return STARTS[`${scheduled}`]
  return VARIANTS[action]?.find(([sign]) => sign.test(detail))?.[1] ?? actionLabel(action)
}

const labelsFor = (action: string): string[] => [
  actionLabel(action),
  ...(VARIANTS[action] ?? []).map(([, label]) => label),
  ...(action === START ? Object.values(STARTS) : []),
]

/** Actions whose new entries always have a more exact label. */
const ALWAYS_VARIED = new Set(['domain.ed25519', 'domain.return-path', 'member.add', START])

/** All labels of new entries, for suggestions. Templates of email have their own actions. */
export const ACTION_LABELS: readonly string[] = Object.keys(LABELS)
  .filter((action) => !action.startsWith('email-template.'))
  .flatMap((action) => labelsFor(action).slice(ALWAYS_VARIED.has(action) ? 1 : 0))
  .sort()

/** Finds the action with this label, ignoring case, or returns the text itself. `label` is set if it has several. */
export function findAction(words: string): { action: string; label?: string | undefined } {
  for (const action of Object.keys(LABELS)) {
    const labels = labelsFor(action)
    const label = labels.find((each) => each.toLowerCase() === words.toLowerCase())
    if (label !== undefined) return { action, label: labels.length > 1 ? label : undefined }
  }
  return { action: words }
}
