/** The error messages of db/messages/whatsapp/. `fill` replaces the names in braces. */

export const TEXTS = {
  noTemplate: 'No template {id} in this team.',
  noTemplateOfField: 'must be the ID of a template in this team. There is no template {id}',
  noWhatsapp: 'No WhatsApp message {id} in this team.',
  noWorkerSynced:
    'No worker has synced within {seconds} s. Make sure that a worker is running with WHATSAPP_ACCESS_TOKEN set.',
  syncFailed: 'Could not sync the templates: {reason}.',
  notAvailable:
    'The WhatsApp account has no template {name} ({language}). `whatsapp-template available TEAM` lists those it has.',
  templateNotApproved: 'The template is {status}. Only approved templates can be sent.',
  templateNotObject: 'The template must be an object.',
  templateTooLarge: 'The template must be at most 256 KiB.',
  templateUnsupported: "The template can't be sent: {reason}.",
  whatsappQuota:
    "Quota exceeded. Your team's limit is {limit} WhatsApp messages per period. Wait for the next period, or request a higher limit.",
  whatsappTemplateExists: 'The team already has a template {name} ({language}).',
  credentialsUndecryptable:
    'Could not decrypt the credentials of the WhatsApp number {name} with SECRET_KEY or SECRET_KEY_PREVIOUS.',
  noNumber: 'WhatsApp number {name} not found. Run `number list` to see all numbers.',
  numberExists: 'The number {name} already exists.',
  numberHasId: 'The number {name} already has this phone number ID.',
  tokenRejected: 'Meta rejects this token for the number and its account: {reason}',
  noNumberChange: 'Specify what to change: a token, an app secret or the messages per second.',
  numberInUse:
    'The number {name} is in use. Teams: {teams}, waiting messages: {waiting}. Give the teams another number, then remove this one once no messages are waiting.',
  oldWeb: 'A web process of an older version is running. It only knows the default number. Replace it first.',
  metaUnreachable: "Meta can't be reached at {host}: {reason}",
  metaFailed: 'Meta returned an error: {reason}',
} as const
