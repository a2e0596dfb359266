/** Feedback types (RFC 5965 §7.3, RFC 6591), from any provider. Pure. */

const NO_COMPLAINT: ReadonlySet<string> = new Set(['not-spam', 'auth-failure'])

/** True if feedback of this type, or without a type, is a complaint about the sender. */
export const isComplaint = (type: string | null | undefined): boolean => !NO_COMPLAINT.has(type ?? '')
