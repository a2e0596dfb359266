/** UUIDs of version 7 that SQL makes, as PostgreSQL 18 does by itself: tests run on 15 and newer. */
import { type FragmentSqlToken, sql } from 'slonik'

/** Returns the expression of a UUID of the moment that `at`, an expression, is. */
export const uuidAt = (at: FragmentSqlToken) => sql.fragment`
  (lpad(to_hex((extract(epoch from ${at}) * 1000)::bigint), 12, '0') || '7'
    || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid`
