/** Mutants that no test notices: of each source, by the reason; run.ts asks for the reason of any other. */
const SAME = 'the outcome is the same: '

export const SURVIVORS: Record<string, Record<string, readonly string[]>> = {
  'db/accounts/plans/period.ts': {
    [`${SAME}no period ends on the day it starts, so none of zero months fits`]: [
      'ConditionalExpression: months > 0 → true in return months > 0 && fits ? months : null',
      'EqualityOperator: months > 0 → months >= 0 in return months > 0 && fits ? months : null',
    ],
  },
  'db/channels/ladder.ts': {
    [`${SAME}of two equal rungs either is the higher`]: [
      'EqualityOperator: rungs.indexOf(one) >= rungs.indexOf(other) → rungs.indexOf(one) > rungs.indexOf(other) in higher: (one: S, other: S): S => (rungs.indexOf(one) >= rungs.indexOf(other) ? one : other),',
    ],
  },
  'db/messages/emails/status.ts': {
    [`${SAME}a split has a first part always`]: [
      `StringLiteral: '' → "Stryker was here!" in const [id = '', by = ''] = event.detail.split(' by ')`,
    ],
  },
}
