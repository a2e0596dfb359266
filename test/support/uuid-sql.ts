/** Generates UUIDs of version 7 in SQL, because tests also run on PostgreSQL before 18. */
import { type FragmentSqlToken, sql } from 'slonik'

/** Returns the SQL expression of a UUID with the time `at`. */
export const uuidAt = (at: FragmentSqlToken) => sql.fragment`
  (lpad(to_hex((extract(epoch from ${at}) * 1000)::bigint), 12, '0') || '7'
    || substr(replace(gen_random_uuid()::text, '-', ''), 14))::uuid`
