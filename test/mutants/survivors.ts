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
  "workers/providers/whatsapp/reports.ts: typeof code === 'number' → true in return { code: typeof code === 'number' ? code : Number.NaN, subcode: 0, words }": `${SAME}no rule is about a code that is no number, nor about a subcode`,
  "workers/providers/whatsapp/reports.ts: 0 → 1 in return { code: typeof code === 'number' ? code : Number.NaN, subcode: 0, words }": `${SAME}no rule is about a code that is no number, nor about a subcode`,
  "workers/providers/whatsapp/reports.ts: typeof data === 'string' → true in const [, team_id, own] = OUR_IDS.exec(typeof data === 'string' ? data : '') ?? []": `${SAME}what is no text has not the form of our ids`,
  "workers/providers/whatsapp/reports.ts: '' → 'mutant' in const [, team_id, own] = OUR_IDS.exec(typeof data === 'string' ? data : '') ?? []": `${SAME}what is no text has not the form of our ids`,
  'workers/providers/whatsapp/reports.ts: && → || in if (team_id && own) return { team_id: team_id.toLowerCase(), id: own.toLowerCase() }': `${SAME}the form has both ids or neither`,
  'db/accounts/teams/limits.ts: < → <= in now: now < rolled.start ? rolled.start : now,': `${SAME}either is the begin of the period`,
  "db/accounts/teams/limits.ts: lock === 'skip' → false in if (lock === 'skip') {": `${SAME}who waits for a locked account comes to the same, only later`,
  'db/text/address.ts: 256 → 257 in export const LONGEST_NAME = 256':
    'it is a limit of fields.ts, which the API’s tests hold',
  "db/text/address.ts: 'xn--' → '' in const plain = /^[a-z0-9.-]+$/.test(folded) && !folded.includes('xn--')": `${SAME}a name of an xn-- label is as good by the longer way, and one of none by either`,
  'db/text/address.ts: plain → false in const ascii = plain ? folded : idnToAscii(folded)': `${SAME}the longer way gives the same for plain names: this one is quicker`,
  'db/text/address.ts: + → - in if (domain === null || local.length + 1 + domain.length > LONGEST_ADDRESS) return null': `${SAME}but for a domain whose ASCII form alone is one or two characters too long`,
  'db/text/address.ts: 500 → 501 in const MOST_PARSED = 500':
    'how many are kept for a second look is a matter of time and memory',
  'db/text/address.ts: 400 → 401 in const LONGEST_PARSED = 400':
    'how long a text is kept for a second look is a matter of time and memory',
  'db/text/address.ts: known !== undefined → false in if (known !== undefined) return known': `${SAME}it is parsed again`,
  'db/text/address.ts: lately.size >= MOST_PARSED → true in if (lately.size >= MOST_PARSED) lately.clear()': `${SAME}it is parsed again, or kept for longer`,
  'db/text/address.ts: lately.size >= MOST_PARSED → false in if (lately.size >= MOST_PARSED) lately.clear()': `${SAME}it is parsed again, or kept for longer`,
  'db/text/address.ts: >= → > in if (lately.size >= MOST_PARSED) lately.clear()': `${SAME}it is parsed again, or kept for longer`,
  'db/text/address.ts: text.length <= LONGEST_PARSED → true in if (text.length <= LONGEST_PARSED) lately.set(text, mailbox)': `${SAME}it is parsed again, or kept for longer`,
  'db/text/address.ts: text.length <= LONGEST_PARSED → false in if (text.length <= LONGEST_PARSED) lately.set(text, mailbox)': `${SAME}it is parsed again, or kept for longer`,
  'db/text/address.ts: <= → < in if (text.length <= LONGEST_PARSED) lately.set(text, mailbox)': `${SAME}it is parsed again, or kept for longer`,
  'db/text/address.ts: open < 0 → false in const bare = open < 0 ? null : parseAddress(inner)': `${SAME}without a < what stands before the > is no address`,
  'db/text/address.ts: /^[\\w.-]*$/.test(name) → false in /^[\\w.-]*$/.test(name)': `${SAME}the longer way gives the same for ASCII: this one is quicker`,
  "db/text/address.ts: '' → 'mutant' in if (/^(?:\\d+|0x[\\da-f]*)$/.test(labels.at(-1) ?? '')) return false": `${SAME}a split has a last part always`,
  'db/text/address.ts: < → <= in for (let at = 1; at < phrase.length; at += 1) {': `${SAME}a letter beyond the end is none, and the phrase is refused`,
  "db/text/address.ts: '' → 'mutant' in name += phrase[at] ?? ''": `${SAME}only a phrase that ends in a backslash has none there, and it is refused`,
  'db/text/address.ts: < → <= in while (start < end && isBlank(start)) start += 1': `${SAME}what lies beyond the end is no blank`,
  'db/text/address.ts: > → >= in while (end > start && isBlank(end - 1)) end -= 1': `${SAME}what lies before the start is no blank`,
  'workers/providers/ses/reports.ts: 512 → 513 in const LONGEST_ID = 512':
    'SES’s own ids have some sixty characters',
  "workers/providers/ses/reports.ts: && → || in words.filter((word) => word !== null && word !== undefined && word !== '').join(' ')": `${SAME}blanks too many are taken away where the words are made storable`,
  "workers/providers/ses/reports.ts: '' → 'mutant' in words.filter((word) => word !== null && word !== undefined && word !== '').join(' ')": `${SAME}blanks too many are taken away where the words are made storable`,
  'workers/providers/ses/reports.ts: isSurelyValid(schema, value) → false in if (isSurelyValid(schema, value)) return value as T': `${SAME}the other way of validating gives the same, in more time`,
  "workers/providers/ses/reports.ts: error instanceof Error → true in storableWords(`${what} is not in SES's form: ${error instanceof Error ? error.message : ''}`),": `${SAME}what the validation throws is an Error always`,
  "workers/providers/ses/reports.ts: '' → 'mutant' in storableWords(`${what} is not in SES's form: ${error instanceof Error ? error.message : ''}`),": `${SAME}what the validation throws is an Error always`,
  "workers/providers/ses/reports.ts: '' → 'mutant' in const time = new Date(text ?? '')": `${SAME}neither is a time`,
  "workers/providers/ses/reports.ts: toLowerCase → toUpperCase in const words = [event.mail.messageId, own, recipient?.toLowerCase() ?? '']": `${SAME}a key is a digest: any one case, and any one word for nobody, tells the same apart`,
  "workers/providers/ses/reports.ts: '' → 'mutant' in const words = [event.mail.messageId, own, recipient?.toLowerCase() ?? '']": `${SAME}a key is a digest: any one case, and any one word for nobody, tells the same apart`,
  'db/text/moments.ts: 60 → 61 in export const EXPIRES_IN = { min: 60, max: 86_400 } as const':
    'test/api/field-types.test.ts holds it',
  'db/text/moments.ts: 86_400 → 86401 in export const EXPIRES_IN = { min: 60, max: 86_400 } as const':
    'test/api/field-types.test.ts holds it',
  'db/text/moments.ts: 0 → 1 in const due = Math.max(now.getTime(), scheduled_at === null ? 0 : Date.parse(scheduled_at))': `${SAME}both are long ago`,
  "db/text/slots.ts: 'unsubscribe_url' → '' in export const UNSUBSCRIBE_SLOT = 'unsubscribe_url'":
    'test/api/public/unsubscribe-link.test.ts holds it',
  "db/text/slots.ts: '' → 'mutant' in let filled = template.texts[0] ?? ''": `${SAME}there is a text before, between and after slots always, if an empty one`,
  "db/text/slots.ts: '' → 'mutant' in filled += template.texts[at + 1] ?? ''": `${SAME}there is a text before, between and after slots always, if an empty one`,
  'db/text/slots.ts: sizes.has(name) → false in if (sizes.has(name)) continue': `${SAME}it is measured again`,
  "db/text/slots.ts: '' → 'mutant' in const value = variables[name] ?? ''":
    'every slot has a value there, which its caller has made sure of',
  'db/text/slots.ts: 0 → 1 in return names.reduce((sum, name) => sum + (sizes.get(name) ?? 0), ofTexts)': `${SAME}each name was measured before`,
  'db/text/slots.ts: < → <= in if (end < 0) throw fault(source, open, `${excerpt(source.slice(open))} is not closed`)': `${SAME}no tag is closed before its third character`,
  'db/text/slots.ts: 0 → 1 in if (end < 0) throw fault(source, open, `${excerpt(source.slice(open))} is not closed`)': `${SAME}no tag is closed before its third character`,
  "workers/providers/smtp/report-fields.ts: '' → 'mutant' in const [, name, value = ''] = /^([!-9;-~]{1,76})[ \\t]*:(.*)$/s.exec(line) ?? []": `${SAME}a line with a name has a value, if an empty one`,
  "workers/providers/smtp/report-fields.ts: cut < 0 → false in const type = cut < 0 ? 'rfc822' : typed.slice(0, cut).trim().toLowerCase()": `${SAME}only utf-8 is a type of its own`,
  "workers/providers/smtp/report-fields.ts: < → <= in const type = cut < 0 ? 'rfc822' : typed.slice(0, cut).trim().toLowerCase()": `${SAME}only utf-8 is a type of its own`,
  "workers/providers/smtp/report-fields.ts: 0 → 1 in const type = cut < 0 ? 'rfc822' : typed.slice(0, cut).trim().toLowerCase()": `${SAME}only utf-8 is a type of its own`,
  "workers/providers/smtp/report-fields.ts: 'rfc822' → '' in const type = cut < 0 ? 'rfc822' : typed.slice(0, cut).trim().toLowerCase()": `${SAME}only utf-8 is a type of its own`,
  'workers/providers/smtp/report-fields.ts: cut < 0 → false in const words = bare(cut < 0 ? typed : typed.slice(cut + 1))': `${SAME}without a semicolon it begins at the first letter`,
  "workers/providers/smtp/report-fields.ts: 1 → 2 in return inner ?? trimmed.split(/[ \\t]/, 1)[0] ?? ''": `${SAME}the first part alone is read`,
  "workers/providers/smtp/report-fields.ts: '' → 'mutant' in return inner ?? trimmed.split(/[ \\t]/, 1)[0] ?? ''": `${SAME}a split has a first part always`,
  "workers/providers/smtp/report-fields.ts: 100 → 101 in const time = Date.parse(text.slice(0, 100).replace(/\\([^()]*\\)/g, ''))":
    'how much of a date is read is a matter of time',
  "workers/providers/smtp/replies.ts: 0 → 1 in const { code, command, response = '', responseCode = 0 } = error": `${SAME}neither is a code of SMTP`,
  'workers/providers/smtp/replies.ts: /^[45]\\d\\d/ → /[45]\\d\\d/ in if (replied && /^[45]\\d\\d/.test(response)) {': `${SAME}what begins with no code is put off either way, with its own words`,
  "workers/providers/smtp/replies.ts: '' → 'mutant' in if (!attempt.isBegun() && (BEFORE_MAIL.has(command ?? '') || code === 'EABORT')) {": `${SAME}neither is a command of SMTP`,
}
