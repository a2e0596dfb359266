/** The error messages of db/delivery/. `fill` replaces the names in braces. */

export const TEXTS = {
  noReport: 'No report {id}.',
  notParked: 'Report {id} is {state}. Only parked reports can be dropped.',
  messageChanged: 'The {noun} has changed since this page was opened.',
  contentDeleted:
    "This {noun} can't be sent again: its content has been deleted, by retention or by an erasure request.",
  noMessage: 'No {noun} {id} in this team.',
  newerVersion:
    'A newer version of Heliograph delivers this {noun}. Requeue it with the CLI of that version.',
  scheduled:
    'The {noun} is scheduled for {time}. To change the time, use `reschedule`. To send it now, use --force.',
  expired: 'The {noun} has expired. To send it anyway, use --force.',
  acceptedAs: 'provider ID {id}',
  statusIs: 'status: {status}',
  alreadyAccepted: "This {noun} can't be sent again: a provider has already accepted it ({proof}).",
  broadcastSuppressed: 'Broadcasts are never sent to a suppressed address. Lift the suppression first.',
  noWorkerChecked: 'No worker has run the check within {seconds} s. Make sure that a worker is running.',
  noSender: 'No sender {key}. `sender list` shows all senders.',
  resumedByOperator: 'by an operator',
  rejected: 'The {noun} was rejected permanently (status: {status}). To send it again anyway, use --force.',
} as const
