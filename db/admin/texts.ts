/** The error messages of db/admin/. `fill` replaces the names in braces. */

export const TEXTS = {
  noDatabase: 'No database. Set DATABASE_URL, or run `npm start`.',
  noSecretKey: 'SECRET_KEY is not set. Use the same value as your web and worker processes.',
  noSecretKeyYet:
    'SECRET_KEY is not set. Use the same value as your web and worker processes, or run `npm start` once.',
  cannotWrite: 'Could not write {file}: {reason}.',
  noAttachment: 'The email has no attachment {n}. `email show` lists its attachments. The first is 0.',
  cannotRead: 'Could not read {file}: {reason}.',
  notText: "{file} isn't UTF-8 text.",
  notJson: "{file} isn't valid JSON: {reason}.",
  noJob: 'No such background job. Finished jobs are deleted after 30 days.',
  jobNotStopped:
    'The job was not stopped. It does not exist, has finished, or is of a kind that cannot be stopped, such as an import.',
  whichQueue: 'Specify a queue, or --restored.',
  parkedAndState: '--parked and --state {state} contradict each other. Leave one out.',
  whichReports: 'Specify reports by their IDs, or use --parked.',
  filterWithoutParked: '--provider, --reason and --before need --parked.',
  whichMessages: 'Specify an ID, or a filter: {filters}.',
  notDomain: '--domain must be a domain, such as example.com.',
  addressOrFilter: 'Specify either an address or a filter, not both.',
  noAddressOrFilter: 'Specify an address or a filter, such as --domain.',
  periodNeedsBoth: 'Specify both --period-start and --period-end, or neither.',
  noChange: 'Specify what to change. `team plan --help` lists the options.',
  oneStandardInput: 'Only one of --html and --text can read standard input.',
} as const
