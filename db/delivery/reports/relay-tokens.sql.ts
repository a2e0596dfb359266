/**
 * Tokens of relays whose signatures don't cover the body (Mailgun). Each is valid for one body, as long as its signed
 * time is accepted.
 */
import { sql } from 'slonik'
import { string } from 'yup'
import type { Tx } from '../../postgres/pool.ts'
import { countRow, row, rowsOf } from '../../postgres/rows.ts'

/** The SHA-256 digests of the token and its body, in base64url. */
export type OneTimeToken = { digest: string; body_digest: string; accepted_until: Date }

const TOKEN = { digest: 'text', body_digest: 'text', accepted_until: 'timestamptz' }

const usedRow = row({ digest: string() })

/**
 * Stores new tokens in the order of their keys, so that batches can't deadlock.
 * @returns the digests of tokens that were already used with another body.
 */
export async function claimTokens(tx: Tx, tokens: readonly OneTimeToken[]): Promise<ReadonlySet<string>> {
  if (tokens.length === 0) return new Set()
  const used = await tx.anyFirst(sql.type(usedRow)`
    with given as materialized (
      select * from ${rowsOf('t', TOKEN, tokens)}
    ), kept as (
      insert into relay_tokens as k (digest, body_digest, accepted_until)
      select digest, body_digest, accepted_until from given order by digest
      on conflict (digest) do update set accepted_until = k.accepted_until
      returning digest, body_digest
    )
    select g.digest from given g join kept k using (digest) where g.body_digest <> k.body_digest`)
  return new Set(used)
}

/** Deletes up to `limit` tokens whose signed time is no longer accepted since `before`. @returns how many. */
export const deleteOldTokens = (tx: Tx, before: Date, limit: number): Promise<number> =>
  tx.oneFirst(sql.type(countRow)`
    with old as (
      select digest from relay_tokens where accepted_until < ${sql.timestamp(before)} limit ${limit}
    ), gone as (
      delete from relay_tokens where digest in (select digest from old) returning 1
    )
    select count(*) as count from gone`)
