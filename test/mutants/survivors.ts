/** Mutants that no test notices, each with its reason; run.ts asks for the reason of any other. */
const SAME = 'the outcome is the same: '

export const SURVIVORS: Record<string, string> = {
  'db/accounts/plans/period.ts: 0 → 1 in let passed = Math.max(0, Math.floor(monthsBetween(start, now) / months))': `${SAME}a period that has not begun is taken back by the next line`,
  'db/accounts/plans/period.ts: floor → ceil in let passed = Math.max(0, Math.floor(monthsBetween(start, now) / months))': `${SAME}one too many is taken back by the next line`,
  'db/accounts/plans/period.ts: > → >= in return months > 0 && fits ? months : null': `${SAME}no period ends on the day it starts, so none of zero months fits`,
  'db/channels/ladder.ts: >= → > in higher: (one: S, other: S): S => (rungs.indexOf(one) >= rungs.indexOf(other) ? one : other),': `${SAME}of two equal rungs either is the higher`,
  "db/messages/emails/status.ts: '' → 'mutant' in const [id = '', by = ''] = event.detail.split(' by ')": `${SAME}a split has a first part always`,
  "db/process/public-address.ts: '127.0.0.0/8,::1/128' → '' in export const LOOPBACK = '127.0.0.0/8,::1/128'":
    'the default of npm start, which test/start.test.ts covers',
  "db/process/public-address.ts: /^\\[(.*)\\]$/ → /\\[(.*)\\]/ in const bare = hostname.replace(/^\\[(.*)\\]$/, '$1')": `${SAME}a host of a URL has brackets at both ends or none`,
  "db/process/public-address.ts: 0 → 1 in isIP(address) !== 0 && (isWithin(address, allowed) || (protocol === 'https:' && isPublicAddress(address)))":
    'it guards against a resolver that answers with no address, which ours cannot',
  "db/messages/whatsapp/template.ts: '' → 'mutant' in const names = [...text.matchAll(/\\{\\{([^{}]*)\\}\\}/g)].map(([, name = '']) => name.trim())": `${SAME}what matches has a name always, if an empty one`,
  'db/messages/whatsapp/template.ts: !(error instanceof Unsupported) → false in if (!(error instanceof Unsupported)) throw error':
    'nothing else is thrown there: the line keeps a fault of ours from becoming a word to a customer',
  'workers/delivery/breaker.ts: > → >= in one !== null && (other === null || one > other) ? one : other': `${SAME}of two equal times either is the latest`,
  'workers/delivery/breaker.ts: 1_000 → 1001 in return oldest !== undefined && performance.now() - oldest.since > SLOW * 1_000':
    'two milliseconds more are nothing to a limit of two seconds',
  'workers/delivery/verdict.ts: 16 → 17 in const grown = first * 2 ** Math.min(deferrals, 16)': `${SAME}the longest pause is reached long before`,
  'workers/delivery/verdict.ts: 0 → 1 in return Math.max(wait_seconds ?? 0, Math.min(grown, LONGEST_PAUSE))': `${SAME}no pause that grows is shorter than two seconds`,
  'workers/delivery/verdict.ts: 0 → 1 in return Math.max(wait_seconds ?? 0, pause * (1 + jitter * (2 * spread - 1)))': `${SAME}no channel has a pause below a second`,
}
