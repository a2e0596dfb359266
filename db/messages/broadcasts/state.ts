/** The states of a broadcast, and the reasons for an automatic pause. Pure. */

export const BROADCAST_STATES = ['draft', 'scheduled', 'sending', 'paused', 'sent', 'cancelled'] as const
export type BroadcastState = (typeof BROADCAST_STATES)[number]

/** Returns a state in the form for sentences, such as “The broadcast is a draft”. */
export const stateWords = (state: BroadcastState): string => (state === 'draft' ? 'a draft' : state)
