/**
 * Codes and phrases that mail servers use for failures. Data only, for failures.ts. Phrases match against
 * lower-case text in which each address is `@` and each run of spaces is one space. ` * ` in a phrase matches
 * up to 80 characters. To add a phrase, add it to a line of its source, in the list of its subject.
 *
 * Sources: RFC 3463 and the IANA registry of enhanced status codes. `manual` is
 * ActiveCampaign/smtp-field-manual. `sisimai` are the reasons of sisimai/p5-sisimai. Other names are
 * providers or servers that send the phrase.
 */

/** The subjects of failures, with the effect of each on the contact. */
export const SUBJECTS = {
  address: 'hard',
  mailbox_full: 'soft',
  policy: 'none',
  rate: 'none',
  message: 'none',
  sender: 'none',
  route: 'soft',
  expired: 'soft',
  unknown: 'soft',
} as const
export type FailureSubject = keyof typeof SUBJECTS

type Codes = readonly (readonly [subject: FailureSubject, codes: RegExp, source: string])[]

/**
 * Enhanced status codes without their class: 5.1.1 and 4.1.1 are both `1.1`. Unlisted codes don't determine a
 * subject.
 */
export const FAILURE_CODES: Codes = [
  ['sender', /^1\.[78]$/, 'RFC 3463 X.1.7, X.1.8: the sender’s address'],
  ['sender', /^7\.27$/, 'RFC 7505: the sender’s domain accepts no mail'],
  ['sender', /^(?:7\.60|2\.252)$/, 'Microsoft: the login may not send as this sender'],
  ['address', /^1\.(?:[1236]|10)$/, 'RFC 3463 X.1.1, X.1.2, X.1.3, X.1.6, RFC 7505 X.1.10'],
  ['mailbox_full', /^2\.2$/, 'RFC 3463 X.2.2'],
  ['rate', /^2\.12[12]$/, 'Exchange: limits of a recipient per hour'],
  ['message', /^(?:2\.3|3\.4|6\.\d{1,3})$/, 'RFC 3463 X.2.3, X.3.4, X.6.x'],
  ['policy', /^7\.\d{1,3}$/, 'RFC 3463 X.7.x, RFC 7372'],
  ['expired', /^4\.(?:7|300|316)$/, 'RFC 3463 X.4.7; Exchange Online 5.4.300, 5.4.316'],
  ['route', /^[34]\.\d{1,3}$/, 'RFC 3463 X.3.x, X.4.x'],
]

/** Microsoft’s replies about recipients that don't exist. Without the status, the same text is used for policies. */
export const MICROSOFT_NO_RECIPIENT = {
  status: '5.4.1',
  phrases: [
    'recipient address rejected: access denied',
    'all recipient addresses rejected: access denied',
    'all recipient addresses rejected : access denied',
  ],
}

/** 5.2.1 needs one of these phrases, because it is also the code of a mailbox that receives too much mail. */
export const DISABLED_MAILBOX = { status: '5.2.1', phrases: ['disabled', 'inactive'] }

type Phrases = readonly (readonly [source: string, ...phrases: string[]])[]

/** Parses lines of a source and its phrases. Quotes keep the spaces around a phrase. */
const parsePhrases = (lines: readonly string[]): Phrases =>
  lines.map((line): Phrases[number] => {
    const [source = '', ...phrases] = line.split(' | ')
    return [source, ...phrases.map((phrase) => phrase.replaceAll('"', ''))]
  })

/** The missing domain is the sender's or the greeting's. */
export const OWN_DOMAIN = parsePhrases([
  "qmail | envelope sender domain | sender domain | sender's domain",
  'Sendmail, Postfix | mail from | helo | ehlo | your domain | return path | return-path',
  'Exchange, Exim | sending domain | from domain does not | from: domain | envelope from domain',
  'Exchange, Exim | envelope-from domain',
])

/** The domain doesn't exist or accepts no mail. The address is wrong, whatever the code. */
export const NO_DOMAIN = parsePhrases([
  'Postfix, RFC 3463 X.1.2 | host or domain name not found | domain not found | no such domain',
  'Postfix, RFC 7505 | does not accept mail (nullmx) | null mx | nullmx | host does not accept mail',
  'Apple | domain does not accept mail',
  'Sendmail | host unknown (name server | name server: * host not found | 550 host unknown',
  "Gmail | the domain * couldn't be found | domain name not found",
  'Exchange | nxdomain | infodomainnonexistent | dns domain * does not exist',
  'Exim | unrouteable mail domain | unrouteable address | unroutable address | all host address lookups failed',
  "qmail | couldn't find any host named | couldn't find any host by that name | couldn't find a mail exchanger",
  'sisimai hostunknown | domain does not exist | domain must exist | no such host is known',
  'sisimai hostunknown | mail domain mentioned in email address is unknown | unknown domain name',
  'sisimai notaccept | no mx record found for domain | mail receiving disabled',
  'sisimai notaccept | smtp protocol returned a permanent error',
  'SendGrid | unable to resolve domain | no mx record or a record',
  'Yahoo | no mx or a records for | name or service not known',
  'Amazon SES | unable to look up a record for | illegal host/domain name found | 5.4.4 invalid domain',
  'Outlook.com, sisimai notaccept | domain is not reachable | does not accept mail',
  'Outlook.com, sisimai notaccept | no route for current request',
])

/** A temporary lookup failure doesn't mean that the domain is wrong. */
export const LOOKUP_FAILED = parsePhrases([
  'Postfix | host not found, try again | temporary lookup failure',
  'Exim | host lookup did not complete | lookup deferred',
])

/** The mailbox does not exist, is disabled or has moved. */
export const ADDRESS = parsePhrases([
  'RFC 5321, Postfix, Sendmail | user unknown | unknown user | userunknown | usernotfound | user is unknown',
  'Postfix | unknown in * table | undeliverable address | unknown recipient | recipient unknown',
  'Exim | no such user | no such person | unknown local part | unknown local-part | no such recipient',
  'Gmail 5.1.1, 5.2.1 | account that you tried to reach does not exist | tried to reach is disabled',
  'Gmail 5.2.1 | tried to reach is inactive | tried to reach * is inactive | nosuchuser | disableduser',
  "Gmail | address couldn't be found | address could not be found",
  "Yahoo | this user doesn't have a | mailbox is disabled | is no longer valid | mailbox not found",
  'Outlook.com | (s2017062302)',
  "Exchange | recipnotfound | recipient notfound | recipientnotfound | recipient not found | wasn't found at",
  "Exchange | was not found at | wasn't found in | was not found in | e-mail address you entered couldn",
  'Exchange | email address you entered couldn | mailbox does not exist | e-mail account does not exist at',
  'Apple | user does not exist | inactive email address | unknown or illegal alias',
  'Comcast | not our customer | mailbox unallocated',
  'AT&T | addressee unknown | invalid address | mailbox has been blocked due to inactivity',
  'Mail.ru | invalid mailbox | account is disabled | user is terminated | user not found | no such mailbox',
  'Yandex | invalid user | bad address mailbox syntax',
  'Zoho | user not exist | account does not exist | invalid recipients',
  'Orange | destinataire invalide | boite du destinataire archivee | utilisateur inconnu',
  'Free.fr | due to inactivity',
  'QQ, 163 | mailbox not exist | user suspended | deactivated mailbox | recipient not exist',
  'Barracuda, Proofpoint, Trend Micro | not a valid email address | is marked as invalid | invalid-recipient',
  'Verizon, Barracuda | no valid recipients for | no valid recipients were found',
  'Symantec, Sophos | invalid recipient | not in recipient list | bad recipient | recipient is invalid',
  'Amazon SES | bad destination | address does not exist | address is invalid',
  'qmail | no mailbox here by that name | validrcptto | badrcptto | no mailbox by that name | vpopmail (#5.1.1)',
  'Domino | not listed in * directory | not listed in public name | no * in name directory',
  'Domino | not present in directory | not listed in domino directory',
  "DragonFly, OpenSMTPD | user doesn't exist | mailbox for @ does not exist",
  'Courier | no such local user | user <> does not exist | maildrop: invalid user specified',
  'Facebook | rcp-p1 http | rcp-p1 | int-p1',
  'GoDaddy | account disabled | recipient not found',
  'Rackspace | or was misspelled',
  "sisimai userunknown | does not exist | doesn't exist | not a known user | not a valid mailbox",
  'sisimai userunknown | not a valid recipient | address unknown | bad address | mailbox invalid',
  'sisimai userunknown | mailbox is inactive | mailbox not present | no account by that name',
  'sisimai userunknown | no mail box available | no mailbox found | no such address | no such account',
  'sisimai userunknown | not a valid user | not a local address | non-existent user | nonexistent user',
  'sisimai userunknown | recipient is not local | address is wrong or no longer valid | no one at this address',
  'sisimai userunknown | unknown mailbox | unknown account | unknown email address | unknown e-mail address',
  'sisimai userunknown | unknown address | user not known | not known here | address not known',
  'sisimai userunknown | unknown or invalid | unknown virtual user | unknown virtual mailbox',
  'sisimai userunknown | user missing home directory | nessun utente | no existe',
  'sisimai userunknown | destination addresses were unknown | email name is not found | not an active address',
  'sisimai userunknown | user not active | user was not found | user @ was not found | user * not found',
  'sisimai hasmoved | has been replaced by | has moved to | user has moved | address has changed',
  'sisimai suspend | inactive account | inactive user | invalid/inactive user | mailbox disabled',
  'sisimai suspend | address no longer accepts mail | account has been disabled | account has been deactivated',
  'sisimai suspend | is a deactivated | account is inactive | user is inactive',
  'sisimai suspend | recipient address rejected: inactive | address rejected: inactive',
  'sisimai suspend | mailbox is no longer active | no longer in use | account has been closed',
])

export const MAILBOX_FULL = parsePhrases([
  'Gmail, Postfix | over quota | overquota | out of storage | quota exceeded | exceeded quota | quota violation',
  'Postfix, Exim | mailbox full | mailbox is full | full mailbox | mailbox for user is full | over the quota',
  'RFC 5321 552 | exceeded storage allocation | exceeds storage allocation',
  'Microsoft | mailbox quota | quotaexceeded | storage limit | mailbox has exceeded | mailboxisfull',
  'Yandex, Mail.ru | mailbox size limit exceeded | exceeded storage | disk quota | disc quota | diskspace quota',
  'Orange | destinataire pleine | recipient overquota | is over * quota',
  'Orange | would exceed quota | user is over',
  'sisimai mailboxfull | not enough storage | not enough space | not sufficient disk space',
  'sisimai mailboxfull | does not have enough space | exceeding * quota | space has been used up',
  'sisimai mailboxfull | mailfolder is full | mail quota | quota usage | maximum allowed storage',
  'sisimai mailboxfull | no space left | reached disk quota | too much mail data | mailbox exceeded',
  'sisimai mailboxfull | exceeds * quota | has too many messages on the server | account is full',
  'sisimai mailboxfull | inbox is full | exceeding receiving limits',
])

export const MESSAGE = parsePhrases([
  'RFC 5321 552 | 552 * size',
  'RFC 1870, Postfix | message size exceeds | size limit | message too large | message is too large',
  'RFC 1870, Postfix | message too big',
  'Exchange | recipsizelimit | sizelimit | message is larger than | message length | size exceeds',
  'Exchange | exceeds maximum size',
  'Gmail | message exceeded | exceeded * message size | too large for this | exceeds size | size exceeded',
  'Gmail | mail too large',
  'sisimai contenterror | illegal attachment | header error | not rfc compliant | content rejected',
  'sisimai contenterror | message content is not',
  'sisimai virusdetected | virus | malware | infected | banned content | executable files | attachment type',
  'sisimai exceedlimit | line limit exceeded | message header size | taille limite du message',
])

export const RATE = parsePhrases([
  'Gmail 5.2.1 | receiving mail at a rate | receiving mail too quickly | receivingrate | rate limit | ratelimit',
  'Exchange | exceeded their limit for the number of messages | exceeded the limit for the number of messages',
  'QQ | frequency limited | frequency is limited | frequency control',
  'Spec, many | too many | trop de | throttl | try again slower | sending too fast | too fast',
  'Spec, many | connection limit',
  'Yahoo | unexpected volume | message rate | rate limited | exceeds per-domain connection limit',
  'Apple | excessive volume',
])

/** A rule of the recipient, with the same text as a missing login at a relay. */
export const RECIPIENT_RULE = parsePhrases([
  'Exchange 5.7.1, 5.7.133, 5.7.134 | resolver.rst.authrequired | resolver.rst.sendernotauthenticated',
])

export const SENDER = parsePhrases([
  'Amazon SES | email address is not verified | identities failed the check | sending is paused',
  'Amazon SES | sending paused',
  'cPanel | exceeded the max emails per hour | exceeded the max defers and failures | max emails per hour',
  'Postfix, Sendmail | relay access denied | relaying denied | relay denied | relaying not permitted',
  'Postfix, Sendmail | relay not permitted',
  'Exim, Zoho, Symantec | not permitted to relay | relaying disallowed | relaying prohibited | unable to relay',
  'Exim, Zoho, Symantec | as a relay',
  'Yahoo, Mimecast | no relaying | not allowed to relay | relaying mail to | not configured to relay',
  'Cox, Spectrum, Postfix | sender rejected | sender address rejected | sender was rejected',
  'Cox, Spectrum, Postfix | sender email address rejected',
  'Orange | emetteur invalide | invalid sender',
  'Exchange | sendasdenied | send as this sender | send on behalf of | not allowed to send as',
  'Exim | sender verify failed | domain of sender | unroutable sender | bogus mail from',
  'Postfix | not owned by user | authentication required | authentication is required',
  'Gmail 5.4.5, as a relay | daily user sending | daily smtp relay | daily sending limit | daily sending quota',
  'Exchange Online, as a relay | daily limit for message recipients | submission quota',
  'Exchange Online, as a relay | submissionquotaexceeded',
  'Exchange, IONOS | sender denied | sender address is not allowed',
  'Exim callouts | sender does not exist | sender @ does not exist | sender <@> does not exist',
  'Exim callouts | sender address @ does not exist | sender address <@> does not exist',
  'SendGrid | maximum credits exceeded | verified sender identity | account is not authorized to send',
])

export const POLICY = parsePhrases([
  'Postfix, Exchange | blocked using | blocked by | block list | blocklist | blacklist | black list | denylist',
  'Postfix, Exchange | block listed',
  'Spamhaus | spamhaus | spamcop | barracudacentral | is listed in | listed at | listed by | dnsbl | " rbl"',
  'Mimecast | security policies | administrative prohibition | envelope blocked | anti-spoofing',
  'Mimecast | blocked senders | spamsignature',
  'Gmail | unsolicited mail | unauthenticated email | reputation | not accepted due to | suspicious',
  'Gmail | our system has detected',
  'Yahoo | policy | message not allowed | not accepted for policy | connections not accepted | user complaints',
  'RFC 7208, RFC 6376, RFC 7489 | spf | dkim | dmarc | sender policy framework | dmarc policy',
  'RFC 7208, RFC 6376, RFC 7489 | not authorized to send',
  'Comcast, GMX, T-Online | ptr record | " ptr " | reverse dns | ptr resource | reverse lookup | rdns',
  'Comcast, GMX, T-Online | invalid dns',
  'QQ, Mail.ru, many | spam | junk | unsolicited | bulk mail | bulk e | abuse | phishing | spoof | banned',
  'Orange | mail rejete | adresse ip source bloquee | client host blocked | ofr_506',
  'Mimecast | requires encryption | requires tls | requires high-strength | host network not allowed',
  'Proofpoint, Barracuda | blocked - see | (@:blocked)',
  'QQ | mail is rejected by recipients | suspected bounce | connection denied',
  'many | accept mail from you | accepting mail from your ip | forbidden by your ip | sorry! your ip',
  'many | your ip address does not | your ip is | your ip has',
  'Barracuda, Trend Micro | ers-customized-block | block-send | block-rcpt | rejected by * filter',
  'Barracuda, Trend Micro | message filtered | 550 blocked',
  'Exchange | access denied | not authorized | notauthorized | organization settings | organizational settings',
  'Exchange | restricted',
  'Postfix, Sendmail | client host rejected | helo command rejected | client host | greylist | graylist',
  'Postfix, Sendmail | not permitted',
  'sisimai filtered | user rules | recipient preferences | refuses to receive | blocked by the recipient',
  'sisimai filtered | only accepting mail from',
  'sisimai onhold | batv | not rfc 2822 | content filter | mail content denied | verification failure',
  'sisimai onhold | dynamic ip',
  'sisimai policyviolation | protocol violation | members-only | not subscribed to | closed mailing list',
  'sisimai policyviolation | mailing list',
])

export const EXPIRED = parsePhrases([
  'Exim | retry timeout exceeded | retry time not reached | has been frozen',
  'Exchange | message expired | delivery time expired | expired',
  'Postfix, Sendmail | delivery temporarily suspended | could not send message for past | too old',
  "qmail | i'm not going to try again | been in the queue too long | queue too long",
])

export const ROUTE = parsePhrases([
  'Postfix | connection refused | connection reset | lost connection',
  'Postfix | connection timed out | connect to * timed out | no route to host | mail for * loops back',
  'Postfix | network is unreachable',
  'Postfix | host not found, try again',
  'Exim | mail loop | routing loop | loop detected | conversation with',
])

/** Failures on the route whose text also contains phrases of other subjects. */
export const NETWORK = parsePhrases([
  'RFC 3463 X.4.6 | too many hops | hop count exceeded',
  'SendGrid | unable to get mx info',
])

/** A rejected connection without a reason. */
export const CONNECTION = parsePhrases(['Postfix | " to talk to me"'])
