/** Returns the sender key of a relay: its host and port. @param url a relay's, validated before. */
export const relaySender = (url: string): string => `smtp:${new URL(url).host}`
