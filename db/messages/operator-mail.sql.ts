/** Queries for the emails that were recently forwarded to the operator. */
import { sql } from 'slonik'
import { object, string } from 'yup'
import type { Tx } from '../postgres/pool.ts'
import { row } from '../postgres/rows.ts'

/** Makes other workers wait until this transaction ends, so that they count its emails. */
export const lockOperatorMail = (tx: Tx) =>
  tx.query(sql.type(object())`select pg_advisory_xact_lock(hashtext('operator_mail'))`)

const keyRow = row({ key: string(), created_at: string() })

export const timesOfKeys = (tx: Tx, teamId: string, keys: readonly string[]) =>
  tx.any(sql.type(keyRow)`
    select idempotency_key as key, created_at from accepted_emails
    where team_id = ${teamId} and idempotency_key = any(${sql.array(keys, 'text')})`)
