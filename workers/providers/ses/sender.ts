/** Returns the sender key of an account in one region. */
export const sesSender = (region: string): string => `ses:${region}`
