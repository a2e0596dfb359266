/** The error messages of db/audience/. `fill` replaces the names in braces. */

export const TEXTS = {
  noContact: 'No contact with this email address.',
  contactQuota:
    "Quota exceeded. Your team's limit is {limit} contacts. Delete contacts, or request a higher limit.",
  noTopicOfField: 'must only contain topics of this team. There is no topic {id}',
  contactExists: 'A contact with this email address already exists.',
  statusClaim:
    'must match the contact ({status}) or be left out. To change it, use POST /v1/contacts/:email/unsubscribe or /resubscribe',
  tooManyColumns: 'must have at most {most} properties',
  columnTooLong: 'must have at most {most} characters each',
  topicExists: 'must be unique. The team already has a topic {name}',
  noTopic: 'No topic {id} in this team.',
  noTeam: 'This team no longer exists.',
  tooManyCells: '{record} has more than {most} cells.',
  strayQuote: 'The row has a quote inside a value. Put the value in quotes, and write each quote in it twice',
  quoteNotClosed: "The row has a quote that isn't closed. Close it, or write it twice inside quotes",
  tooManyColumnsOfFile:
    'The first row names {count} columns, and the limit is {most}. Columns are separated by commas, semicolons or tabs.',
  recordTooLong: "{record} is longer than 1 MB. Check for a quote that isn't closed.",
  firstLine: 'The first row',
  recordAfterLine: 'The record that starts after line {line}',
  noUpload:
    'This upload no longer exists. It was imported, discarded, or deleted after a day. If it wasn’t imported, upload the file again.',
  chosenTopicGone: 'A topic you chose has been deleted. Choose the topics again.',
  badFile: 'The file {problem}.',
  tooManyUploads: '{most} uploads haven’t been imported yet. Import or discard one first.',
  columnsChanged: 'Someone else has changed the columns since this page was opened.',
  noRecords: 'The file has no records after its first row.',
  tooManyRecords: 'The file must have at most {most} records.',
  noImport: 'This import no longer exists. Imports are deleted after a week.',
  noReason: 'Enter the reason for the suppression.',
  noEmailColumn: 'Choose the column that contains the email address.',
  targetTwice: 'Two columns are mapped to the {target}. Choose one.',
  surplusCells: 'The row has {cells} cells, but the first row has {columns}',
  quoteSeparators: '{surplus}. Put values that contain separators in quotes',
  cannotResubscribe: "The contact is suppressed ({status}), so it can't be resubscribed.",
  alreadySuppressed: "must be an address that isn't suppressed. {email} is suppressed already",
  reasonLength: 'must have 1 to {most} characters',
  notSuppressed: "This address isn't suppressed.",
  suppressedSince: 'The contact has been suppressed for another reason since this page was opened.',
  topicInUse: 'The topic is in use by {broadcasts}. Remove it there first.',
} as const
