/** Judges a stored response once more: whether it is evidence that the address is dead. Pure. */

const DEAD_ADDRESS = /(?:^|[^\d.])5\.1\.(?:1|2|3|6|10)(?![\d.])/

/** True if a server's response states that the address doesn't exist or accepts no mail. */
export const isAboutAddress = (response: string): boolean => DEAD_ADDRESS.test(response)
