/** The key of the sender that a relay is: its host with its port. @param url a relay's, which was checked before. */
export const relaySender = (url: string): string => `smtp:${new URL(url).host}`
