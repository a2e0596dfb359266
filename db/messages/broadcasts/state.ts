/** The states of a broadcast, and why one is paused when no person did it. Pure. */

export const BROADCAST_STATES = ['draft', 'scheduled', 'sending', 'paused', 'sent', 'cancelled'] as const
export type BroadcastState = (typeof BROADCAST_STATES)[number]
