/** Feedback types (RFC 5965 §7.3, RFC 6591), from any provider. Pure. */

const NO_COMPLAINT: ReadonlySet<string> = new Set(['not-spam', 'auth-failure'])

/** Whether feedback of this type is a complaint about the sender; one without a type is. */
export const isComplaint = (type: string | null | undefined): boolean => !NO_COMPLAINT.has(type ?? '')
