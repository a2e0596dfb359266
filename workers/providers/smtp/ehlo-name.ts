/** Chooses the name that EHLO gives a relay. Relays such as Gmail's reject addresses and names without a dot. Pure. */
import { isIP } from 'node:net'
import { domainToAscii } from '../../../db/validation/address.ts'

export type NameSettings = {
  SMTP_EHLO_NAME?: string | undefined
  PUBLIC_URL?: string | undefined
  RETURN_PATH_DOMAIN?: string | undefined
}

const isAddress = (name: string): boolean => isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0

/** True for a host name, and for names that are merely skipped: an address, or a name without a dot. */
export const isEhloName = (name: string | undefined): boolean =>
  name === undefined || isAddress(name) || /^[\w-]+$/.test(name) || domainToAscii(withoutDot(name)) !== null

const withoutDot = (name: string): string => name.replace(/\.$/, '')

/** Returns the name in ASCII. Null for an address, `localhost` or a name without a dot. */
function usableName(name = ''): string | null {
  const bare = withoutDot(name)
  return isAddress(bare) || !bare.includes('.') ? null : domainToAscii(bare)
}

/** Returns the first usable name of the settings, otherwise the machine's, or undefined. */
export function ehloName(settings: NameSettings, machine: string): string | undefined {
  const { SMTP_EHLO_NAME, PUBLIC_URL, RETURN_PATH_DOMAIN } = settings
  const site = PUBLIC_URL === undefined ? undefined : new URL(PUBLIC_URL).hostname
  const names = [SMTP_EHLO_NAME, site, RETURN_PATH_DOMAIN, machine]
  return names.map(usableName).find((name) => name !== null) ?? undefined
}
