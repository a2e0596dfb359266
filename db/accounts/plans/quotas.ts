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
type UsedColumn = AnyQuota['used']

/** Whether it is counted afresh in each period. */
export const isPeriodic = ({ name }: AnyQuota): boolean => name !== CONTACTS.name

/** All of them, in the order in which what is used is shown: first what a period counts. */
export const USED: readonly AnyQuota[] = [...QUOTAS.filter(isPeriodic), CONTACTS]

/** What is limited, in words: `emails per period`, `stored contacts`. */
export const limitWords = (quota: AnyQuota): string =>
  isPeriodic(quota) ? `${quota.noun} per period` : `stored ${quota.noun}`

/** A value for each quota, by its name. */
export const byQuota = <V>(
  value: (quota: AnyQuota) => V,
  quotas: readonly AnyQuota[] = QUOTAS,
): Record<QuotaName, V> =>
  Object.fromEntries(quotas.map((quota) => [quota.name, value(quota)])) as Record<QuotaName, V>

/** A value for each limit, by its column. */
export const byLimit = <V>(value: (quota: AnyQuota) => V): Record<LimitColumn, V> =>
  Object.fromEntries(QUOTAS.map((quota) => [quota.limit, value(quota)])) as Record<LimitColumn, V>

/** A value for what is used of each quota, by its column. */
export const byUse = <V>(value: (quota: AnyQuota) => V): Record<UsedColumn, V> =>
  Object.fromEntries(USED.map((quota) => [quota.used, value(quota)])) as Record<UsedColumn, V>
