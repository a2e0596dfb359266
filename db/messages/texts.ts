/** The error messages of db/messages/. `fill` replaces the names in braces. */

export const TEXTS = {
  publicUrlUnset:
    'An operator must set PUBLIC_URL to the https:// address of this service, because unsubscribe links use it.',
  noUnsubscribeLink: 'The template must contain the variable {name}.',
  noTemplate: 'No template {id} in this team.',
  fromPending: "The From domain {name} isn't verified yet.",
  fromUnverified: "The From domain {name} isn't verified in this team.",
  topicDeleted: 'The {which} topic {id} has been deleted. Choose the topics again.',
  noTopicChosen: 'No topic is selected, so no one would receive it.',
  noAudience: 'The audience is empty. No subscribed contact matches.',
  audienceOverQuota: 'Contacts in the audience: {audience}. Emails left in your quota: {left} of {limit}.',
  broadcastChanged: 'Someone else changed this broadcast.',
  templateChanged: 'The template has changed since this page was opened.',
  audienceChanged: 'The audience has changed. It now has {contacts}, not {before}.',
  noBroadcast: 'No broadcast {id} in this team.',
  domainOfKey: 'must be at {domain}. This API key can only send from that domain',
  noTemplateOfField: 'must be the ID of a template in this team. There is no template {id}',
  noTopicOfField: 'must be the ID of a topic in this team. There is no topic {id}',
  notDraft: 'The broadcast is {state}. Only a draft can be {action}.',
  savedByOther:
    'Someone else saved this draft while you were editing. Your version is below. Compare the two, then save again.',
  missingValue: 'no value for {names}',
  subjectTooLong: 'the subject would have {count} characters',
  notEnded:
    'The broadcast is {state}. Only a broadcast that has ended can be sent to the remaining contacts.',
  emailsDeleted:
    'Some emails of this broadcast have been deleted, so its previous recipients are no longer known.',
  allReached: 'The broadcast is {state}. It has been sent to all matching contacts.',
  broadcastChanging: 'The broadcast has just been changed. Try again.',
  noTest: "The test can't be sent: {reason}.",
  wrongState: 'The broadcast is {state}. It can only be {action} while it is {states}.',
  attachmentDeleted: 'An attachment was deleted while this request was in progress. Try again.',
  emailQuota:
    "Quota exceeded. Your team's limit is {limit} emails per period. Wait for the next period, or request a higher limit.",
  notAddress: 'must be an email address',
  notMailbox: 'must be an email address, with or without a name, for example Acme <hello@example.com>',
  missingVariables: 'must contain every variable of the template. Missing: {names}',
  badUnsubscribeUrl: 'must have an http(s) URL in {name}, because the List-Unsubscribe header contains it',
  partTooLarge: 'must not make the {part} larger than {most} bytes',
  noAttachment: "must be the ID of an upload in this team. {id} doesn't exist or has expired",
  fromNotVerified:
    "must be at a verified domain. {domain} isn't verified yet. Publish its DNS records, then verify it",
  fromNotInTeam: 'must be at a verified domain of this team. Add and verify {domain} first',
  tooManyLinks:
    "An email with more than {most} unsubscribe links can't be sent again. Send a new email instead.",
  noEmail: 'No email {id} in this team.',
  notDomainGiven: "must be a domain name. {given} isn't one",
  notAddressGiven: "must be an email address. {given} isn't one",
  tooManyWords: 'must have at most {most} words',
  cannotCopy: "This email can't be copied.",
  copyOfBroadcast:
    "An email of a broadcast can't be sent to another address. Add that address as a contact instead.",
  noMessage: 'No {noun} {id} in this team.',
  keySendsFrom: 'This API key can only send from {domain}.',
  notWaiting: 'This message can no longer be cancelled or rescheduled.',
  noType: "must only contain event types. {type} isn't one of {types}",
  noTypeGiven: 'must contain at least one event type, or {all}',
  allAndTypes: 'must be either {all} or a list of event types, not both',
  noDomainOfField: 'must be a domain of this team. There is no domain {name}',
  noWebhook: 'No webhook {id} in this team.',
  tooManyWebhooks: 'A team can have at most {most} webhooks. Remove one first.',
  secretRotated: "Someone else has rotated this webhook's secret since this page was opened.",
  webhookDisabled: 'The webhook is disabled. Enable it first.',
  secretUndecryptable:
    'Could not decrypt the secret of webhook {id} (team {team}) with SECRET_KEY or SECRET_KEY_PREVIOUS.',
  noWebhookMessage: "This webhook event doesn't exist. It may have been deleted because of its age.",
  blocked: "The {broadcast} can't be {what} yet. {reasons}",
  noSuchMessage: 'No {noun} with this ID in this team.',
  pausedForTeam:
    'Broadcasts and batches of the team are paused ({reason}). An owner can resume them in the dashboard, and an operator also with `team resume-bulk`.',
} as const
