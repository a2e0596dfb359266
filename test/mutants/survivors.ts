/** Lists the surviving mutants of each source by reason. run.ts requires a reason for each. */
const SAME = 'the outcome is the same: '

export const SURVIVORS: Record<string, Record<string, readonly string[]>> = {
  'api/hooks/relay-signatures.ts': {
    [`${SAME}no JSON is no event, whatever it is instead`]: [
      "StringLiteral: '' → \"Stryker was here!\" in const parsed = (body: Buffer): unknown => parseJson(utf8Text(body) ?? '')",
    ],
    [`${SAME}what is no text is no time in seconds`]: [
      "ConditionalExpression: typeof timestamp !== 'string' → false in if (key === null || typeof signature !== 'string' || typeof timestamp !== 'string') throw notGenuine()",
    ],
    [`${SAME}each such key has its details`]: [
      "OptionalChaining: key.asymmetricKeyDetails?.namedCurve → key.asymmetricKeyDetails.namedCurve in return key.asymmetricKeyDetails?.namedCurve === 'prime256v1' ? key : null",
    ],
    [`${SAME}what is no credential is none of our secrets`]: [
      "StringLiteral: '' → \"Stryker was here!\" in function credentialIn(authorization = ''): string | null {",
      "StringLiteral: '' → \"Stryker was here!\" in const [, scheme = '', value = ''] = /^(Bearer|Basic) +(\\S+) *$/i.exec(authorization) ?? []",
      "ArrayDeclaration: [] → [\"Stryker was here\"] in const [, scheme = '', value = ''] = /^(Bearer|Basic) +(\\S+) *$/i.exec(authorization) ?? []",
      "ConditionalExpression: value === '' → false in if (scheme.toLowerCase() !== 'basic') return value === '' ? null : value",
      "StringLiteral: '' → \"Stryker was here!\" in if (scheme.toLowerCase() !== 'basic') return value === '' ? null : value",
    ],
  },
  'api/hooks/sns-envelope.ts': {
    [`${SAME}the other way of validating gives the same, in more time`]: [
      'ConditionalExpression: isSurelyValid(notification, value) → false in if (isSurelyValid(notification, value)) return value as SnsEnvelope',
    ],
    [`${SAME}what is valid is surely valid, before it is asked for its type`]: [
      "ConditionalExpression: Type === 'Notification' → false in return (Type === 'Notification' ? notification : confirmation).validateSync(value, { strict: true })",
      "StringLiteral: 'Notification' → \"\" in return (Type === 'Notification' ? notification : confirmation).validateSync(value, { strict: true })",
    ],
    [`${SAME}what does not match has no second part`]: [
      'ArrayDeclaration: [] → ["Stryker was here"] in const [, partition, region] = TOPIC_ARN.exec(topicArn) ?? []',
      'ArrayDeclaration: [] → ["Stryker was here"] in const [, host_region, china] = HOST.exec(url.hostname) ?? []',
    ],
    [`${SAME}the URL is compared whole with what it must be`]: [
      "Regex: /^\\/[\\w-]{1,200}\\.pem$/ → /\\/[\\w-]{1,200}\\.pem$/ in const path = /^\\/[\\w-]{1,200}\\.pem$/.exec(url?.pathname ?? '')?.[0]",
      "Regex: /^\\/[\\w-]{1,200}\\.pem$/ → /^\\/[\\w-]{1,200}\\.pem/ in const path = /^\\/[\\w-]{1,200}\\.pem$/.exec(url?.pathname ?? '')?.[0]",
      'LogicalOperator: url && path !== undefined → url || path !== undefined in return url && path !== undefined && SigningCertURL === `https://${url.hostname}${path}` ? url : null',
      'ConditionalExpression: path !== undefined → true in return url && path !== undefined && SigningCertURL === `https://${url.hostname}${path}` ? url : null',
    ],
    [`${SAME}neither is a path`]: [
      "StringLiteral: '' → \"Stryker was here!\" in const path = /^\\/[\\w-]{1,200}\\.pem$/.exec(url?.pathname ?? '')?.[0]",
    ],
    [`${SAME}neither is a URL, and without one nothing is asked`]: [
      "StringLiteral: '' → \"Stryker was here!\" in const url = snsUrl(SubscribeURL ?? '', TopicArn)",
      "OptionalChaining: asked?.Action → asked.Action in asked?.Action === 'ConfirmSubscription' &&",
    ],
  },
  'api/hooks/sns.ts': {
    [`${SAME}of more than twenty one is the oldest`]: [
      'ConditionalExpression: oldest !== undefined → true in if (kept.size > MAX_CERTIFICATES && oldest !== undefined) kept.delete(oldest)',
    ],
    [`${SAME}neither is an answer of status 200`]: [
      'ArrowFunction: () => null → () => undefined in const answer = await ask(url, { agent }, bounds).catch(() => null)',
    ],
  },
  'db/accounts/plans/period.ts': {
    [`${SAME}no period ends on the day it starts, so none of zero months fits`]: [
      'ConditionalExpression: months > 0 → true in return months > 0 && fits ? months : null',
      'EqualityOperator: months > 0 → months >= 0 in return months > 0 && fits ? months : null',
    ],
  },
  'db/channels/status-order.ts': {
    [`${SAME}of two equal rungs either is the higher`]: [
      'EqualityOperator: rungs.indexOf(one) >= rungs.indexOf(other) → rungs.indexOf(one) > rungs.indexOf(other) in higher: (one: S, other: S): S => (rungs.indexOf(one) >= rungs.indexOf(other) ? one : other),',
    ],
  },
  'db/messages/emails/state-changes.ts': {
    [`${SAME}only kinds of events are compared`]: [
      'ArrayDeclaration: [] → ["Stryker was here"] in candidates(state, pending, []) !== null',
    ],
  },
  'db/messages/emails/status.ts': {
    [`${SAME}a split has a first part always`]: [
      "StringLiteral: '' → \"Stryker was here!\" in const [id = '', by = ''] = event.detail.split(' by ')",
    ],
  },
  'db/messages/whatsapp/apply-events.ts': {
    [`${SAME}no row is asked for then`]: [
      'ArrayDeclaration: [] → ["Stryker was here"] in const rows = refs.length > 0 ? await lockMessages(tx, refs) : []',
    ],
    [`${SAME}of two equal times either is the earliest`]: [
      'EqualityOperator: known.accepted_at < occurred_at → known.accepted_at <= occurred_at in accepted_at: known && known.accepted_at < occurred_at ? known.accepted_at : occurred_at,',
    ],
    [`${SAME}what is not on the ladder is below all of it`]: [
      "StringLiteral: 'queued' → \"\" in const status = higherStatus(rises.get(keyOf(event))?.status ?? 'queued', statusOfEvent(event.kind))",
    ],
  },
  'db/messages/whatsapp/template.ts': {
    [`${SAME}what matches has a name always, if an empty one`]: [
      "StringLiteral: '' → \"Stryker was here!\" in const found = [...text.matchAll(SLOT)].map(([, name = '']) => name.trim())",
    ],
    [`${SAME}a part without slots, or none at all, adds nothing`]: [
      'ArrowFunction: () => ({ slots: [] }) → () => undefined in FOOTER: () => ({ slots: [] }),',
    ],
    [`${SAME}each type of the order has its part`]: [
      'ArrayDeclaration: [] → ["Stryker was here"] in return isObject(component) ? (PARTS[type]?.(component, definition) ?? []) : []',
      'OptionalChaining: PARTS[type]?.(component, definition) → PARTS[type](component, definition) in return isObject(component) ? (PARTS[type]?.(component, definition) ?? []) : []',
    ],
    'nothing else is thrown there: the line keeps a fault of ours from becoming a word to a customer': [
      'ConditionalExpression: !(error instanceof Unsupported) → false in if (!(error instanceof Unsupported)) throw error',
    ],
  },
  'db/process/public-address.ts': {
    'the default of npm start, which test/start.test.ts covers': [
      "StringLiteral: '127.0.0.0/8,::1/128' → \"\" in export const LOOPBACK = '127.0.0.0/8,::1/128'",
    ],
    [`${SAME}a host of a URL has brackets at both ends or none`]: [
      "Regex: /^\\[(.*)\\]$/ → /\\[(.*)\\]$/ in const bare = hostname.replace(/^\\[(.*)\\]$/, '$1')",
      "Regex: /^\\[(.*)\\]$/ → /^\\[(.*)\\]/ in const bare = hostname.replace(/^\\[(.*)\\]$/, '$1')",
    ],
    'it guards against a resolver that answers with no address, which ours cannot': [
      "ConditionalExpression: isIP(address) !== 0 → true in isIP(address) !== 0 && (isWithin(address, allowed) || (protocol === 'https:' && isPublicAddress(address)))",
    ],
  },
  'db/validation/moments.ts': {
    [`${SAME}what is read past is no day of its own`]: [
      'ArrayDeclaration: [] → ["Stryker was here"] in const [, day] = A_TIME.exec(text) ?? []',
    ],
  },
  'db/audience/suppressions/suppress.ts': {
    [`${SAME}each event says its effect`]: [
      "StringLiteral: 'none' → \"\" in function toRef({ team_id, recipient, effect = 'none' }: Pick<Touched, 'team_id' | 'recipient' | 'effect'>) {",
    ],
    [`${SAME}nobody is locked, written or judged then`]: [
      'ConditionalExpression: wanted.size === 0 → false in if (wanted.size === 0) return () => undefined',
    ],
  },
  'db/audience/subscription/preferences.ts': {
    [`${SAME}what is not held is looked at`]: [
      "StringLiteral: 'look' → \"\" in const held = await topicsOfContact(tx, teamId, identity, 'look')",
    ],
    'it guards against a contact that is gone while it is locked, which cannot be': [
      'ConditionalExpression: !contact → false in if (!contact) throw noContact()',
    ],
  },
  'db/audience/subscription/subscription.ts': {
    [`${SAME}the account of a team is locked for a contact, too`]: [
      'ConditionalExpression: await lockContact(tx, teamId, identity) → false in if (await lockContact(tx, teamId, identity)) return true',
    ],
    'the same topics are written again, which the test of the API notices': [
      'ConditionalExpression: kept.length < held.topic_ids.length → true in if (kept.length < held.topic_ids.length) await keepTopics(at, teamId, held, { topic_ids: kept, by })',
      'EqualityOperator: kept.length < held.topic_ids.length → kept.length <= held.topic_ids.length in if (kept.length < held.topic_ids.length) await keepTopics(at, teamId, held, { topic_ids: kept, by })',
    ],
  },
  'db/messages/emails/apply-events.ts': {
    [`${SAME}nothing is stored or written then`]: [
      'ConditionalExpression: events.length === 0 → false in if (events.length === 0) return []',
      'ConditionalExpression: placed.length === 0 → false in if (placed.length === 0) return results',
      'ConditionalExpression: changes.length > 0 → true in if (changes.length > 0) await changeEmails(tx, changes, rows)',
      'EqualityOperator: changes.length > 0 → changes.length >= 0 in if (changes.length > 0) await changeEmails(tx, changes, rows)',
    ],
    [`${SAME}what is not on the ladder is below all of it`]: [
      "StringLiteral: 'queued' → \"\" in changes.set(keyOf(attempt), { ...attempt, status: 'queued', pending })",
      "StringLiteral: 'queued' → \"\" in ...{ team_id, email_id, status: 'queued', provider_message_id: null, size_kb: null },",
    ],
    [`${SAME}what is neither of the others leaves them as they were`]: [
      "StringLiteral: 'unchanged' → \"\" in pending: 'unchanged',",
    ],
  },
  'workers/delivery/breaker.ts': {
    [`${SAME}more than ten thousand have an oldest`]: [
      'ConditionalExpression: oldest !== undefined → true in if (known.size > MAX_REMEMBERED && oldest !== undefined) known.delete(oldest)',
    ],
    [`${SAME}null is neither later nor earlier than anything: the comparison says what the question would`]: [
      'ConditionalExpression: one !== null → true in one !== null && (other === null || one > other) ? one : other',
      'ConditionalExpression: other === null → false in one !== null && (other === null || one > other) ? one : other',
    ],
    [`${SAME}of two equal times either is the latest`]: [
      'EqualityOperator: one > other → one >= other in one !== null && (other === null || one > other) ? one : other',
    ],
    [`${SAME}null is no more than two seconds`]: [
      'ConditionalExpression: lasted !== null → true in if (isLate || (lasted !== null && lasted > SLOW_SEND_S)) return IN_FLIGHT_PER_SEND.slow',
    ],
  },
  'workers/delivery/retry-policy.ts': {
    [`${SAME}what has no time is no time ago`]: [
      'ConditionalExpression: since !== null → true in const isOverdue = since !== null && now.getTime() - Date.parse(since) > DELIVERY_DEADLINE_MS',
      'ConditionalExpression: accepted_at !== null → true in const takenSince = held_at !== null && accepted_at !== null && accepted_at > held_at',
    ],
  },
  'db/accounts/teams/limits.ts': {
    [`${SAME}either is the begin of the period`]: [
      'EqualityOperator: now < rolled.start → now <= rolled.start in now: now < rolled.start ? rolled.start : now,',
    ],
    [`${SAME}a row is written once more as it is`]: [
      'ConditionalExpression: counted.length === 0 → false in if (counted.length === 0) return',
    ],
  },
  'db/validation/address.ts': {
    [`${SAME}the longer way gives the same for plain names: this one is quicker`]: [
      "ConditionalExpression: /^[a-z0-9.-]+$/.test(folded) && !folded.includes('xn--') → false in const plain = /^[a-z0-9.-]+$/.test(folded) && !folded.includes('xn--')",
      "Regex: /^[a-z0-9.-]+$/ → /^[a-z0-9.-]$/ in const plain = /^[a-z0-9.-]+$/.test(folded) && !folded.includes('xn--')",
      "Regex: /^[a-z0-9.-]+$/ → /^[^a-z0-9.-]+$/ in const plain = /^[a-z0-9.-]+$/.test(folded) && !folded.includes('xn--')",
      "StringLiteral: 'xn--' → \"\" in const plain = /^[a-z0-9.-]+$/.test(folded) && !folded.includes('xn--')",
      'Regex: /^[\\w.-]*$/ → /^[\\w.-]$/ in /^[\\w.-]*$/.test(name)',
      'Regex: /^[\\w.-]*$/ → /^[^\\w.-]*$/ in /^[\\w.-]*$/.test(name)',
      'Regex: /^[\\w.-]*$/ → /^[\\W.-]*$/ in /^[\\w.-]*$/.test(name)',
    ],
    [`${SAME}it is parsed again, or kept for longer`]: [
      'ConditionalExpression: known !== undefined → false in if (known !== undefined) return known',
      'ConditionalExpression: lately.size >= MAX_PARSED → false in if (lately.size >= MAX_PARSED) lately.clear()',
      'ConditionalExpression: lately.size >= MAX_PARSED → true in if (lately.size >= MAX_PARSED) lately.clear()',
      'EqualityOperator: lately.size >= MAX_PARSED → lately.size > MAX_PARSED in if (lately.size >= MAX_PARSED) lately.clear()',
      'EqualityOperator: lately.size >= MAX_PARSED → lately.size < MAX_PARSED in if (lately.size >= MAX_PARSED) lately.clear()',
      'ConditionalExpression: text.length <= LONGEST_PARSED → true in if (text.length <= LONGEST_PARSED) lately.set(text, mailbox)',
      'ConditionalExpression: text.length <= LONGEST_PARSED → false in if (text.length <= LONGEST_PARSED) lately.set(text, mailbox)',
      'EqualityOperator: text.length <= LONGEST_PARSED → text.length < LONGEST_PARSED in if (text.length <= LONGEST_PARSED) lately.set(text, mailbox)',
      'EqualityOperator: text.length <= LONGEST_PARSED → text.length > LONGEST_PARSED in if (text.length <= LONGEST_PARSED) lately.set(text, mailbox)',
      'CallExpression: lately.set(text, mailbox) → ; in if (text.length <= LONGEST_PARSED) lately.set(text, mailbox)',
    ],
    [`${SAME}without a < what stands before the > is no address`]: [
      'ConditionalExpression: open < 0 → false in const bare = open < 0 ? null : parseAddress(inner)',
    ],
    [`${SAME}a split has a last part always`]: [
      "StringLiteral: '' → \"Stryker was here!\" in if (/^(?:\\d+|0x[\\da-f]*)$/.test(labels.at(-1) ?? '')) return false",
    ],
    [`${SAME}a letter beyond the end is none, and the phrase is refused`]: [
      'EqualityOperator: at < phrase.length → at <= phrase.length in for (let at = 1; at < phrase.length; at += 1) {',
    ],
    [`${SAME}only a phrase that ends in a backslash has none there, and it is refused`]: [
      "StringLiteral: '' → \"Stryker was here!\" in name += phrase[at] ?? ''",
    ],
    [`${SAME}what lies beyond the ends is no blank`]: [
      'ConditionalExpression: start < end → true in while (start < end && isBlank(start)) start += 1',
      'EqualityOperator: start < end → start <= end in while (start < end && isBlank(start)) start += 1',
      'ConditionalExpression: end > start → true in while (end > start && isBlank(end - 1)) end -= 1',
      'EqualityOperator: end > start → end >= start in while (end > start && isBlank(end - 1)) end -= 1',
    ],
  },
  'workers/delivery/slots.ts': {
    [`${SAME}who has no bound holds nothing of its own`]: [
      'ObjectLiteral: { stepAside() {}, returnToQueue() {} } → {} in const NOT_HELD: Held = { stepAside() {}, returnToQueue() {} }',
      'ConditionalExpression: at_once === undefined → false in if (at_once === undefined) return NOT_HELD',
    ],
    [`${SAME}none is as good as no entry`]: [
      'ConditionalExpression: left > 0 → true in if (left > 0) bySender.set(key, left)',
      'EqualityOperator: left > 0 → left >= 0 in if (left > 0) bySender.set(key, left)',
    ],
    [`${SAME}what its sender may not take it may not take when it is asked again`]: [
      'CallExpression: refused.add(sender.key) → ; in refused.add(sender.key)',
    ],
    [`${SAME}the answer takes it off as well`]: [
      'CallExpression: queue.waiting.delete(next) → ; in queue.waiting.delete(next)',
    ],
    [`${SAME}who has nobody waiting has no first`]: [
      'EqualityOperator: each.waiting.size > 0 → each.waiting.size >= 0 in .filter((each) => !tried.has(each) && each.waiting.size > 0 && each.busy < each.size)',
      'ConditionalExpression: each.waiting.size > 0 → true in .filter((each) => !tried.has(each) && each.waiting.size > 0 && each.busy < each.size)',
    ],
    'no test yet: one that gets its slot at once has not waited': [
      'BooleanLiteral: false → true in const waiting = { applicant, answer, late: false }',
    ],
    'tests give their own patience': [
      'ArithmeticOperator: SLOW_SEND_S * 1_000 → SLOW_SEND_S / 1_000 in export function createSlots(limit: number, patience = SLOW_SEND_S * 1_000) {',
    ],
    'no test yet: one that is late steps aside once, and who waits for its sender hears of its end': [
      'CallExpression: clearInterval(timer) → ; in clearInterval(timer)',
      'CallExpression: turns.grant() → ; in turns.grant()',
    ],
  },
  'db/validation/slots.ts': {
    "what an error's name is, is for people who read a log": [
      "StringLiteral: 'TemplateFault' → \"\" in override name = 'TemplateFault'",
    ],
    'test/api/public/unsubscribe-link.test.ts holds it': [
      "StringLiteral: 'unsubscribe_url' → \"\" in export const UNSUBSCRIBE_SLOT = 'unsubscribe_url'",
    ],
    [`${SAME}there is a text before, between and after slots always, if an empty one`]: [
      "StringLiteral: '' → \"Stryker was here!\" in let filled = template.texts[0] ?? ''",
      "StringLiteral: '' → \"Stryker was here!\" in filled += template.texts[at + 1] ?? ''",
    ],
    'every slot has a value there, which its caller has made sure of': [
      "StringLiteral: '' → \"Stryker was here!\" in const value = variables[name] ?? ''",
    ],
    [`${SAME}no tag is closed before its third character`]: [
      'EqualityOperator: end < 0 → end <= 0 in if (end < 0) throw fault(source, open, fill(TEXTS.notClosed, { start: excerpt(source.slice(open)) }))',
    ],
  },
  'workers/providers/smtp/replies.ts': {
    'no test yet': [
      'Regex: /^554 (?:Message rejected: (?:Email address is not verified|…d)|Access denied)/i → /^554 (?:Message rejected: (?:Email address is not verified|…d)|Access denied)/i in /^554 (?:Message rejected: (?:Email address is not verified|Sending (?:is )?paused)|Access denied)/i',
      'ArrayDeclaration: [] → ["Stryker was here"] in const refusals = error.command === \'MAIL FROM\' ? [] : attempt.refusals()',
      "Regex: /^\\d{3}[ -]#?(\\d\\.\\d{1,3}\\.\\d{1,3})\\b/ → /^\\d{3}[ -]#?(\\d\\.\\d\\.\\d{1,3})\\b/ in const toEnhanced = (reply: string): string => /^\\d{3}[ -]#?(\\d\\.\\d{1,3}\\.\\d{1,3})\\b/.exec(reply)?.[1] ?? ''",
    ],
    [`${SAME}what is no recipient was not found`]: [
      'ConditionalExpression: recipient !== undefined → true in if (recipient !== undefined && found.has(recipient)) {',
    ],
    [`${SAME}what begins with no code is put off either way, with its own words`]: [
      'Regex: /^[45]\\d\\d/ → /[45]\\d\\d/ in if (replied && /^[45]\\d\\d/.test(response)) {',
    ],
    [`${SAME}neither is a command of SMTP`]: [
      "StringLiteral: '' → \"Stryker was here!\" in if (!attempt.isBegun() && (BEFORE_MAIL.has(command ?? '') || isSilent)) {",
    ],
  },
  'workers/providers/smtp/report-fields.ts': {
    [`${SAME}a line with a name has a value, if an empty one, and one without a name is passed over`]: [
      "StringLiteral: '' → \"Stryker was here!\" in const [, name, value = ''] = /^([!-9;-~]{1,76})[ \\t]*:(.*)$/s.exec(line) ?? []",
      "Regex: /^([!-9;-~]{1,76})[ \\t]*:(.*)$/s → /^([!-9;-~]{1,76})[ \\t]*:(.*)/s in const [, name, value = ''] = /^([!-9;-~]{1,76})[ \\t]*:(.*)$/s.exec(line) ?? []",
      'ArrayDeclaration: [] → ["Stryker was here"] in const [, name, value = \'\'] = /^([!-9;-~]{1,76})[ \\t]*:(.*)$/s.exec(line) ?? []',
    ],
    [`${SAME}what stands before the first field is no field`]: [
      'ArrayDeclaration: [] → ["Stryker was here"] in const lines: string[] = []',
    ],
    [`${SAME}what begins with a blank and continues nothing is no field`]: [
      "ConditionalExpression: last >= 0 → true in if (/^[ \\t]+\\S/.test(line) && last >= 0 && lines[last] !== '') lines[last] += ` ${line.trim()}`",
    ],
    [`${SAME}only utf-8 is a type of its own`]: [
      "ConditionalExpression: cut < 0 → false in const type = cut < 0 ? 'rfc822' : typed.slice(0, cut).trim().toLowerCase()",
      "EqualityOperator: cut < 0 → cut <= 0 in const type = cut < 0 ? 'rfc822' : typed.slice(0, cut).trim().toLowerCase()",
      "StringLiteral: 'rfc822' → \"\" in const type = cut < 0 ? 'rfc822' : typed.slice(0, cut).trim().toLowerCase()",
    ],
    [`${SAME}without a semicolon it begins at the first letter`]: [
      'ConditionalExpression: cut < 0 → false in const words = bare(cut < 0 ? typed : typed.slice(cut + 1))',
    ],
    [`${SAME}a split has a first part always`]: [
      "StringLiteral: '' → \"Stryker was here!\" in return inner ?? trimmed.split(/[ \\t]/, 1)[0] ?? ''",
    ],
    [`${SAME}what was not coded is itself, decoded`]: [
      'ConditionalExpression: decoded === written → false in if (decoded === written || parseAddress(decoded) === null) return written',
    ],
    [`${SAME}what is an address decoded is one as it is written too`]: [
      'ConditionalExpression: parseAddress(other) !== null → true in parseAddress(other) !== null &&',
    ],
    'how much of a date is read is a matter of time': [
      "MethodExpression: text.slice(0, 100) → text in const time = Date.parse(text.slice(0, 100).replace(/\\([^()]*\\)/g, ''))",
    ],
  },
  'workers/providers/smtp/reports.ts': {
    'test/workers/providers/smtp/hostile-reports.test.ts holds it': [
      "MethodExpression: type.slice(0, 40) → type in const said = { type: type.slice(0, 40).toWellFormed(), detail: by === '' ? type : `${type}: ${by}` }",
    ],
    [`${SAME}a split has a first part always`]: [
      "StringLiteral: '' → \"Stryker was here!\" in .split(/[^a-z]/, 1)[0] ?? ''",
    ],
    [`${SAME}a key is compared with keys alone: any one case, and any one word for nothing, tells the same apart`]:
      [
        "StringLiteral: '' → \"Stryker was here!\" in const when = action === 'delayed' ? `:${occurred_at.toISOString()}` : ''",
        "MethodExpression: recipient?.toLowerCase() → recipient?.toUpperCase() in event_key: `dsn:${action}:${status}:${recipient?.toLowerCase() ?? ''}${when}`,",
        "StringLiteral: '' → \"Stryker was here!\" in event_key: `dsn:${action}:${status}:${recipient?.toLowerCase() ?? ''}${when}`,",
        "MethodExpression: recipient?.toLowerCase() → recipient?.toUpperCase() in event_key: `feedback:${type}:${recipient?.toLowerCase() ?? ''}`,",
        "StringLiteral: '' → \"Stryker was here!\" in event_key: `feedback:${type}:${recipient?.toLowerCase() ?? ''}`,",
      ],
  },
  'workers/providers/relays/read-event.ts': {
    'an id with brackets elsewhere is none of ours: neither form of it finds an email': [
      "Regex: /^<(.*)>$/ → /<(.*)>$/ in .replace(/^<(.*)>$/, '$1')",
    ],
    [`${SAME}a split has a first part always`]: [
      "StringLiteral: '' → \"Stryker was here!\" in return isUuid(id.split('@', 1)[0] ?? '') ? { provider_message_id: id } : null",
    ],
    [`${SAME}a key is a digest: any one case tells the same recipients apart`]: [
      "MethodExpression: recipient.toLowerCase() → recipient.toUpperCase() in const words = id === '' ? body : JSON.stringify([id, textAt(event, ...page.time), recipient.toLowerCase()])",
    ],
  },
  'workers/providers/ses/faults.ts': {
    [`${SAME}no status is within the bounds`]: [
      "ConditionalExpression: status !== undefined → true in if (status !== undefined && status >= 200 && status < 300) return { kind: 'accepted', detail: words }",
    ],
    [`${SAME}neither is a code of a connection`]: [
      "StringLiteral: '' → \"Stryker was here!\" in if (isUnsent(fault) || NOT_CONNECTED.has(fault.code ?? '')) {",
    ],
  },
  'workers/providers/ses/reports.ts': {
    [`${SAME}blanks too many are taken away where the words are made storable`]: [
      "MethodExpression: words.filter((word) => word !== null && word !== undefined && word !== '') → words in words.filter((word) => word !== null && word !== undefined && word !== '').join(' ')",
      "ConditionalExpression: word !== null && word !== undefined && word !== '' → true in words.filter((word) => word !== null && word !== undefined && word !== '').join(' ')",
      "LogicalOperator: word !== null && word !== undefined && word !== '' → word !== null && word !== undefined || word !== '' in words.filter((word) => word !== null && word !== undefined && word !== '').join(' ')",
      "ConditionalExpression: word !== null && word !== undefined → true in words.filter((word) => word !== null && word !== undefined && word !== '').join(' ')",
      "LogicalOperator: word !== null && word !== undefined → word !== null || word !== undefined in words.filter((word) => word !== null && word !== undefined && word !== '').join(' ')",
      "ConditionalExpression: word !== null → true in words.filter((word) => word !== null && word !== undefined && word !== '').join(' ')",
      "ConditionalExpression: word !== undefined → true in words.filter((word) => word !== null && word !== undefined && word !== '').join(' ')",
      "ConditionalExpression: word !== '' → true in words.filter((word) => word !== null && word !== undefined && word !== '').join(' ')",
      "StringLiteral: '' → \"Stryker was here!\" in words.filter((word) => word !== null && word !== undefined && word !== '').join(' ')",
    ],
    [`${SAME}what names its recipients is there`]: [
      "OptionalChaining: delivery?.smtpResponse → delivery.smtpResponse in detail: delivery?.smtpResponse ?? '',",
      'OptionalChaining: delivery?.timestamp → delivery.timestamp in at: delivery?.timestamp,',
      'OptionalChaining: deliveryDelay?.delayType → deliveryDelay.delayType in detail: joined(deliveryDelay?.delayType, status, diagnosticCode),',
      'OptionalChaining: deliveryDelay?.timestamp → deliveryDelay.timestamp in at: deliveryDelay?.timestamp,',
    ],
    [`${SAME}the other way of validating gives the same, in more time`]: [
      'ConditionalExpression: isSurelyValid(schema, value) → false in if (isSurelyValid(schema, value)) return value as T',
    ],
    [`${SAME}what the validation throws is an Error always`]: [
      "StringLiteral: '' → \"Stryker was here!\" in storableWords(`${what} doesn't have SES's format: ${error instanceof Error ? error.message : ''}`),",
    ],
    [`${SAME}neither is a time`]: [
      "StringLiteral: '' → \"Stryker was here!\" in const time = new Date(text ?? '')",
    ],
    [`${SAME}a key is a digest: any one case, and any one word for nobody, tells the same apart`]: [
      "MethodExpression: recipient?.toLowerCase() → recipient?.toUpperCase() in const words = [event.mail.messageId, own, recipient?.toLowerCase() ?? '']",
      "StringLiteral: '' → \"Stryker was here!\" in const words = [event.mail.messageId, own, recipient?.toLowerCase() ?? '']",
    ],
  },
  'workers/providers/whatsapp/reports.ts': {
    [`${SAME}what is no text has not the form of our ids, and what has not has neither`]: [
      "ConditionalExpression: typeof data === 'string' → true in const [, team_id, own] = OUR_IDS.exec(typeof data === 'string' ? data : '') ?? []",
      "StringLiteral: '' → \"Stryker was here!\" in const [, team_id, own] = OUR_IDS.exec(typeof data === 'string' ? data : '') ?? []",
      "ArrayDeclaration: [] → [\"Stryker was here\"] in const [, team_id, own] = OUR_IDS.exec(typeof data === 'string' ? data : '') ?? []",
    ],
    [`${SAME}the form has both ids or neither`]: [
      'LogicalOperator: team_id && own → team_id || own in if (team_id && own) return { team_id: team_id.toLowerCase(), id: own.toLowerCase() }',
    ],
  },
  'db/messages/emails/return-path.ts': {
    [`${SAME}a digit of base 36 is read in either case`]: [
      'MethodExpression: digits.toLowerCase() → digits.toUpperCase() in const ref = text.startsWith(next, index + token.length) && readDigits(secrets, digits.toLowerCase())',
    ],
    [`${SAME}the signature, cut elsewhere, proves nothing`]: [
      'ConditionalExpression: bytes.length !== IDS_BYTES + SIGNATURE_BYTES → false in if (bytes.length !== IDS_BYTES + SIGNATURE_BYTES) return null',
    ],
  },
  'db/delivery/senders/circuit-breaker.ts': {
    [`${SAME}nothing is inserted then`]: [
      'ConditionalExpression: events.length > 0 → true in if (events.length > 0) await insertSenderEvents(tx, events)',
      'EqualityOperator: events.length > 0 → events.length >= 0 in if (events.length > 0) await insertSenderEvents(tx, events)',
    ],
  },
  'db/delivery/senders/rate-limit.ts': {
    [`${SAME}who was never slowed has its ceiling`]: [
      'ConditionalExpression: slowedAt === null → false in recovered >= ceiling || slowedAt === null ? null : new Date(slowedAt.getTime() + minutes * RECOVERY_MS),',
    ],
    [`${SAME}null is no later than now`]: [
      'ConditionalExpression: pace.paused_until !== null → true in if (pace.paused_until !== null && pace.paused_until > now) {',
      'ConditionalExpression: pace.paused_until !== null → true in if (pace.paused_until !== null && pace.paused_until >= until) return { pace, isNews: false }',
      'ConditionalExpression: pace.paused_until !== null → true in const isKnown = pace.paused_until !== null && pace.paused_until > now && pace.pause_reason === reason',
    ],
    [`${SAME}a sender without a key has no row`]: [
      'ArrayDeclaration: [] → ["Stryker was here"] in const saved: ({ key: string } & Pace)[] = []',
    ],
    'it guards against a row that is gone while it is locked, which cannot be': [
      'StringLiteral: `the row of sender ${key} was deleted just now` → `` in if (!row) throw new Error(`the row of sender ${key} was deleted just now`)',
      'ConditionalExpression: !row → false in if (!row) throw new Error(`the row of sender ${key} was deleted just now`)',
    ],
    [`${SAME}what has not changed is written again, or nothing is asked for once more`]: [
      'ConditionalExpression: pace !== found → true in if (pace !== found) saved.push({ key, ...pace })',
      'ConditionalExpression: saved.length > 0 → true in if (saved.length > 0) await saveSenders(tx, saved)',
      'EqualityOperator: saved.length > 0 → saved.length >= 0 in if (saved.length > 0) await saveSenders(tx, saved)',
      'ConditionalExpression: changes.length === 0 → false in const made = changes.length === 0 ? [] : await database.transaction((tx) => changePaces(tx, changes))',
      'ArrayDeclaration: [] → ["Stryker was here"] in const made = changes.length === 0 ? [] : await database.transaction((tx) => changePaces(tx, changes))',
      'ConditionalExpression: optional.length === 0 → false in if (optional.length === 0) return new Map()',
    ],
    [`${SAME}each sender has its reservation`]: [
      'ConditionalExpression: reservation → true in if (reservation) reserved.set(sender.key, reservation)',
      'ArrayDeclaration: [] → ["Stryker was here"] in return wanted.flatMap(({ sender }) => reserved.get(sender.key) ?? [])',
    ],
    'nobody reads why, where nothing waits': [
      "StringLiteral: '' → \"Stryker was here!\" in return [[key, { delays: costs.map(() => 0), wait_seconds: 0, reason: '', state }]]",
    ],
    [`${SAME}what is absent is read as null`]: [
      'ObjectLiteral: { paused_until: null, troubles: 0, accepted_at: null, deferrals: null } → {} in export const UNTROUBLED: Circuit = { paused_until: null, troubles: 0, accepted_at: null, deferrals: null }',
    ],
  },
  'workers/providers/smtp/automatic-replies.ts': {
    [`${SAME}no prefix matches an absent subject`]: [
      "StringLiteral: '' → \"Stryker was here!\" in const subject = (mail.email.subject ?? '').replaceAll('’', \"'\").trim().toLowerCase()",
    ],
  },
  'workers/providers/smtp/plain-bounce.ts': {
    [`${SAME}the first line is never a copy, nor one with a recipient`]: [
      'EqualityOperator: end < 0 → end <= 0 in return end < 0 ? lines : lines.slice(0, end)',
      "EqualityOperator: at < 0 → at <= 0 in if (at < 0) return { recipient: null, reply: lines.join(' ') }",
    ],
    [`${SAME}a split always has a first part`]: [
      "StringLiteral: '' → \"Stryker was here!\" in recipient: parseFieldAddress(`rfc822;${failed.split(',')[0] ?? ''}`),",
    ],
    [`${SAME}neither is a code`]: [
      "StringLiteral: '' → \"Stryker was here!\" in (line) => failureCode(line, '') !== '' || classifyFailure({ reply: line }).about !== 'unknown',",
    ],
  },
  'db/messages/whatsapp/parameters.ts': {
    [`${SAME}each variable has a value by then`]: [
      "StringLiteral: '' → \"Stryker was here!\" in const length = codePoints(values[slot] ?? '')",
    ],
  },
  'db/accounts/domains/ramp.ts': {
    [`${SAME}what does not match has no second part`]: [
      'ArrayDeclaration: [] → ["Stryker was here"] in const [, limit, factor] = /^(\\d{1,6})x(\\d{1,3}(?:\\.\\d{1,3})?)$/.exec(text) ?? []',
    ],
  },
  'db/messages/whatsapp/opt-outs.ts': {
    'tested where they are used, with a worker': [
      "StringLiteral: '131050' → \"\" in export const OPTED_OUT_CODE = '131050'",
      "StringLiteral: 'the recipient opted out of marketing' → \"\" in export const OPTED_OUT = 'the recipient opted out of marketing'",
    ],
    'nobody reads it': [
      "StringLiteral: '' → \"Stryker was here!\" in ...{ subject: 'other', team_id, id: null, occurred_at: new Date(at), detail: '' },",
    ],
    [`${SAME}an opt-out that exists is stored again, and nothing is found by no keys`]: [
      'MethodExpression: changes .filter(({ is_out }) => !is_out) → changes',
      'ConditionalExpression: ends.length === 0 → false in if (ends.length === 0) return []',
      'ConditionalExpression: reply_to === null → false in const replied = reply_to === null ? [] : await messageRepliedTo(tx, { id: reply_to, number })',
    ],
    [`${SAME}a text has no fields to store`]: [
      'ArrayDeclaration: [] → ["Stryker was here"] in const changes: OptOutChange[] = []',
    ],
  },
  'db/messages/whatsapp/numbers.ts': {
    [`${SAME}no rows are updated`]: [
      'ConditionalExpression: fresh.length > 0 → true in if (fresh.length > 0) await updateSealedNumbers(tx, fresh)',
      'EqualityOperator: fresh.length > 0 → fresh.length >= 0 in if (fresh.length > 0) await updateSealedNumbers(tx, fresh)',
    ],
  },
  'db/validation/attributes.ts': {
    [`${SAME}past the end of a text there is no character`]: [
      'ConditionalExpression: character !== undefined → true in const isSpace = (character: string | undefined): boolean => character !== undefined && /\\s/.test(character)',
      "EqualityOperator: end < html.length → end <= html.length in while (end < html.length && html[end] !== '>' && !isSpace(html[end])) end += 1",
      'EqualityOperator: at < html.length → at <= html.length in for (let at = start; at < html.length; at += 1) {',
      "StringLiteral: '' → \"Stryker was here!\" in } else if (/[a-z]/i.test(html[at + 1] ?? '')) at = readTag(html, at + 1, values)",
    ],
    [`${SAME}the next tag starts after this one, and its name comes before its values`]: [
      "ArithmeticOperator: at + 1 → at - 1 in if (character === '>') return at + 1",
      'EqualityOperator: end < 0 → end <= 0 in if (end < 0) return html.length',
      'EqualityOperator: end < 0 → end <= 0 in if (end < 0) break',
    ],
    [`${SAME}a variable is longer than a quote, and none ends where another starts`]: [
      'ArithmeticOperator: at + 1 → at - 1 in values.push({ start: at + 1, end, isQuoted: true })',
      'EqualityOperator: (values[next]?.end ?? Number.POSITIVE_INFINITY) <= at → (values[next]?.end ?? Number.POSITIVE_INFINITY) < at in while ((values[next]?.end ?? Number.POSITIVE_INFINITY) <= at) next += 1',
    ],
    [`${SAME}the last text has no variable after it`]: [
      'ConditionalExpression: index === template.names.length → false in if (index === template.names.length) break',
    ],
  },
}
