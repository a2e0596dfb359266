/**
 * What the audit trail's actions are called on pages; the command line and files keep the codes. Pure.
 * Promises: an action without words, such as one of a later version, is its code.
 */
import type { Channel } from '../../../db/channels/channel.sql.ts'
import { CHANNELS } from '../../../db/channels/channels.sql.ts'

/** What is done with the messages of a channel, and with its templates. */
const labelsOf = ({ name, noun, title }: Channel): Record<string, string> => ({
  [`${name}.cancel`]: `Cancelled a scheduled ${noun}`,
  [`${name}.open`]: `Read one ${noun}`,
  [`${name}.requeue`]: `Sent ${noun}s again`,
  [`${name}.reschedule`]: `Rescheduled one ${noun}`,
  [`${name}-template.create`]: `Created a template of ${title}`,
  [`${name}-template.status`]: `Changed the status of a template of ${title}`,
  [`${name}-template.sync`]: `Synced the templates of ${title}`,
})

/** What was done, by its action: reads on from the person's name. */
const LABELS: Readonly<Record<string, string>> = {
  ...Object.assign({}, ...CHANNELS.map(labelsOf)),
  'broadcast.again': 'Sent a broadcast to those it had not gone to',
  'broadcast.cancel': 'Cancelled a broadcast',
  'broadcast.create': 'Created a broadcast',
  'broadcast.delete': 'Deleted a broadcast',
  'broadcast.export': 'Exported a broadcast’s recipients',
  'broadcast.pause': 'Paused a broadcast',
  'broadcast.resume': 'Resumed a broadcast',
  'broadcast.start': 'Started or scheduled a broadcast',
  'broadcast.test': 'Sent a test of a broadcast',
  'broadcast.unschedule': 'Unscheduled a broadcast',
  'broadcast.update': 'Changed a broadcast',
  'contact.change': 'Changed a contact',
  'contact.create': 'Created a contact',
  'contact.delete': 'Deleted a contact',
  'contact.erase': 'Erased a person',
  'contact.export': 'Exported contacts',
  'contact.import': 'Imported contacts',
  'contact.leave_topics': 'Unsubscribed a contact from topics',
  'contact.lift': 'Lifted a suppression',
  'contact.resubscribe': 'Resubscribed a contact',
  'contact.suppress': 'Suppressed an address',
  'contact.unsubscribe': 'Unsubscribed a contact',
  'domain.add': 'Added a domain',
  'domain.rekey': 'Rotated a DKIM key',
  'domain.remove': 'Removed a domain',
  'domain.verify': 'Verified a domain',
  'email.delete': 'Deleted emails',
  'email.export': 'Exported emails',
  'email.file': 'Downloaded an attachment',
  'email.resend': 'Sent an email to another address',
  'import.open': 'Read an import',
  'key.create': 'Created an API key',
  'key.revoke': 'Revoked an API key',
  'login.link': 'Created a sign-in link',
  'member.add': 'Added a person, or changed their role',
  'member.end_sessions': 'Signed a person out everywhere',
  'member.remove': 'Removed a person',
  'operator.add': 'Made a person an operator',
  'plan.load': 'Loaded the plans',
  'queue.pause': 'Paused a queue',
  'queue.redrive': 'Tried dead letters again',
  'queue.resume': 'Resumed a queue',
  'report.drop': 'Dropped delivery reports',
  'report.read': 'Read a delivery report',
  'report.replay': 'Tried delivery reports again',
  search: 'Searched',
  'secret.reseal': 'Sealed the stored secrets again',
  'sender.check': 'Checked a sender',
  'sender.resume': 'Resumed a sender',
  'session.create': 'Created a session token',
  'session.revoke': 'Revoked a session token',
  'suppression.export': 'Exported suppressions',
  'suppression.import': 'Imported suppressions',
  'team.columns': 'Chose the columns of the contacts’ list',
  'team.create': 'Created the team',
  'team.plan': 'Changed the plan or its limits',
  'team.rename': 'Renamed the team',
  'team.resume': 'Resumed the team',
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
  'webhook.add': 'Added a webhook',
  'webhook.disable': 'Disabled a webhook',
  'webhook.enable': 'Enabled a webhook',
  'webhook.read': 'Read what a webhook was sent',
  'webhook.remove': 'Removed a webhook',
  'webhook.replay': 'Sent webhooks again',
  'webhook.requeue': 'Sent messages of a webhook again',
  'webhook.rotate': 'Created a new webhook secret',
  'webhook.set': 'Changed a webhook',
  'webhook.test': 'Sent a test to a webhook',
}

/** An action in words. */
export const actionLabel = (action: string): string => LABELS[action] ?? action

/** The action that words are of, in any case of their letters; words of none stay as they are. */
export const actionOf = (words: string): string =>
  Object.keys(LABELS).find((action) => actionLabel(action).toLowerCase() === words.toLowerCase()) ?? words
