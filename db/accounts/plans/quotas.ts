/**
 * What a plan limits: the messages of each channel in a period, and stored contacts. Owns the names of their columns.
 * Promises: the lists that walk over QUOTAS agree, so that a new channel's limit is set, kept, counted and shown. Pure.
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

/** All of them, in the order in which limits are asked for and shown. */
export const QUOTAS = [EMAILS.quota, CONTACTS, ...OTHERS.map(({ quota }) => quota)]

export type AnyQuota = (typeof QUOTAS)[number]
export type QuotaName = AnyQuota['name']
export type LimitColumn = AnyQuota['limit']

/** Whether it is counted afresh in each period. */
export const isPeriodic = ({ name }: AnyQuota): boolean => name !== CONTACTS.name

/** All of them, in the order in which what is used is shown: first what a period counts. */
export const USED: readonly AnyQuota[] = [...QUOTAS.filter(isPeriodic), CONTACTS]

/** What is limited, in words: `emails per period`, `stored contacts`. */
export const limitWords = (quota: AnyQuota): string =>
  isPeriodic(quota) ? `${quota.noun} per period` : `stored ${quota.noun}`

// A loop, since each charge makes a few of these: Object.fromEntries takes longer.
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

/** A value for what is used of each quota, by its column. */
export const byUse = <V>(value: (quota: AnyQuota) => V) => table(USED, 'used', value)
