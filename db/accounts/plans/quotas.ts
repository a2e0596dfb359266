/**
 * Quotas of a plan: the messages of each channel per period, and stored contacts. All code that lists quotas uses
 * QUOTAS, so that a new channel's quota is set, stored, counted and shown.
 */
import type { Quota } from '../../channels/facts.ts'
import { CHANNEL_FACTS } from '../../channels/list.ts'

const CONTACTS = {
  name: 'contacts',
  title: 'Contacts',
  noun: 'contacts',
  limit: 'contact_limit',
  used: 'contacts_used',
  defaults: { free: 1_000, paid: null, custom: null },
} as const satisfies Quota

const [EMAILS, ...OTHERS] = CHANNEL_FACTS

/** All quotas, in the order of forms and pages. */
export const QUOTAS = [EMAILS.quota, CONTACTS, ...OTHERS.map(({ quota }) => quota)]

export type AnyQuota = (typeof QUOTAS)[number]
export type QuotaName = AnyQuota['name']
export type LimitColumn = AnyQuota['limit']

/** True if it restarts in each period. */
export const isPeriodic = ({ name }: AnyQuota): boolean => name !== CONTACTS.name

/** All quotas, in the order of usage: periodic ones first. */
export const USED: readonly AnyQuota[] = [...QUOTAS.filter(isPeriodic), CONTACTS]

/** Describes a quota: `emails per period`, `stored contacts`. */
export const describeLimit = (quota: AnyQuota): string =>
  isPeriodic(quota) ? `${quota.noun} per period` : `stored ${quota.noun}`

// A loop, because each charge creates several, and Object.fromEntries is slower.
function table<K extends 'name' | 'limit' | 'used', V>(
  quotas: readonly AnyQuota[],
  key: K,
  value: (quota: AnyQuota) => V,
): Record<AnyQuota[K], V> {
  const values: Partial<Record<AnyQuota[K], V>> = {}
  for (const quota of quotas) values[quota[key]] = value(quota)
  return values as Record<AnyQuota[K], V>
}

/** A value for each quota, by its name. */
export const byQuota = <V>(value: (quota: AnyQuota) => V, quotas: readonly AnyQuota[] = QUOTAS) =>
  table(quotas, 'name', value)

/** A value for each limit, by its column. */
export const byLimit = <V>(value: (quota: AnyQuota) => V) => table(QUOTAS, 'limit', value)

/** Creates a value for the usage of each quota, by its column. */
export const byUse = <V>(value: (quota: AnyQuota) => V) => table(USED, 'used', value)
