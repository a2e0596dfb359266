/** The error messages of db/accounts/. `fill` replaces the names in braces. */

export const TEXTS = {
  unknownScope: 'must only contain scopes from this list: {scopes}. There is no scope {scope}',
  noScope: 'must have at least one of {scopes}',
  notDomain: "must be a domain name. {given} isn't one",
  domainNotInTeam: 'must be a domain of the team. Add {name} first',
  expiryPast: 'must be in the future. {time} has passed',
  notAddress: "must be an email address. {given} isn't one",
  noKey: 'No key {id} in this team.',
  whichSession: 'Specify the ID of a session token, --user EMAIL or --all.',
  noSession: 'No active session token {id} in this team.',
  tokenForMember: "You aren't a member of this team, so you can't create a session token in it.",
  tooManyTokens:
    'You already have {count} session tokens in this team, which is the limit. Revoke one first.',
  noDomain: 'No domain {name} in this team.',
  domainExists: 'must be unique. The team already has the domain {name}',
  keyRotated: 'Someone else has rotated the key since this page was opened.',
  domainRemoved: 'The domain {name} has been removed.',
  keyUndecryptable:
    'Could not decrypt the DKIM key of {name} (team {team}) with SECRET_KEY or SECRET_KEY_PREVIOUS.',
  lastOwner: '{email} is the only owner of this team. Make someone else an owner first.',
  isMember: "{email} is already a member of this team. Change the role on the member's page.",
  noMember: 'No member {email} in this team.',
  roleWithoutTeam: '--role needs --team. Specify both, or leave out --role.',
  noAccount: 'No account for {email}. Specify a team with --team, or use --operator.',
  linkUsed: 'This link has expired or has already been used. Request a new one.',
  notMember: "This account isn't a member of any team. Ask a team owner or the operator to add you.",
  planTwice: 'The catalog has two plans with the key {key}.',
  catalogReplaced: 'Someone else has replaced the catalog since this page was opened.',
  planInUse:
    'The catalog lacks the plan {key}, which teams use ({teams}). Add it, or move those teams first.',
  noPlan: 'must be a plan for teams ({plans}). There is no plan {key}',
  storageFull:
    'Storage quota exceeded. The limit is {limit} bytes, {used} are in use, and this request needs {added} more. Request a higher limit.',
  rateExceeded: 'Rate limit exceeded. Try again in {seconds} s.',
  limitNotWhole: '{field} must be a whole number from 0 to {most}.',
  storageOutOfRange: 'storage_gb must be from 0 to {most}.',
  rateOutOfRange: 'The rate must be from {least} to {most} sends per second.',
  periodEndsFirst: 'The period must end after its start.',
  periodInFuture: 'The period must not start in the future.',
  noTeam: 'No team {id}.',
  domainQuota:
    'Domain quota exceeded. The plan {plan} allows {limit} in total, and the team has {domains}. Remove one, or move the team to a plan that allows more.',
  keyEnded: 'The key was revoked or has expired. Create a new one.',
} as const
