/** The key of the sender that an account is in one region. */
export const sesSender = (region: string): string => `ses:${region}`
