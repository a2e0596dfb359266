/**
 * Authenticates API keys and session tokens. All unusable credentials return the same error, like those of a suspended
 * team. Nothing is cached, so a revoked key stops working with the next request. A credential costs one query, or none
 * if its checksum is wrong. Once an hour, a second query updates when the key was last used.
 */

import { createHash, timingSafeEqual } from 'node:crypto'
import {
  noteKeyUse,
  type PrincipalRow,
  principalsByKeys,
  principalsBySessions,
  type Scope,
} from '../../db/accounts/credentials/credentials.sql.ts'
import {
  type CredentialKind,
  credentialHash,
  credentialKind,
  displayPrefix,
} from '../../db/accounts/credentials/token.ts'
import { RequestError } from '../../db/errors.ts'
import { fill } from '../../db/fill.ts'
import { type Database, isDatabaseUnavailable, type Tx } from '../../db/postgres/pool.ts'
import { type Batcher, createBatcher } from './batcher.ts'
import { TEXTS } from './texts.ts'

/** `key` is a prefix, `domain` the only sending domain. `actor` is for the audit log: the user, or the prefix. */
export type Principal = {
  key: string | null
  actor: string
  kind: CredentialKind
  team_id: string
  scopes: readonly string[]
  domain: string | null
}

export type PrivateAccess = {
  scope: Scope | null
  kinds: readonly CredentialKind[]
  /** The scope that session tokens need if keys need none. A session token of a viewer can only read. */
  session_scope?: Scope
}
export const keyOnly = (scope: Scope): PrivateAccess => ({ scope, kinds: ['key'] })
export const keyOrSession = (scope: Scope): PrivateAccess => ({ scope, kinds: ['key', 'session'] })
export const anyKeyOrSession = (session_scope: Scope): PrivateAccess => ({
  ...{ scope: null, kinds: ['key', 'session'], session_scope },
})

const HOUR = 3_600_000

const BEARER = /^Bearer +([^\s]+) *$/i

const hourOf = (at: Date): Date => new Date(Math.floor(at.getTime() / HOUR) * HOUR)

const isNewHour = (last: string | null, now: Date): boolean => last === null || new Date(last) < hourOf(now)

/** Concurrent look-ups share a statement. */
type KeyLookup = Batcher<{ hash: string; now: Date }, { found: PrincipalRow | null }>

export type Credentials = Readonly<Record<CredentialKind, KeyLookup>>

export function createCredentials(database: Database): Credentials {
  const lookUp = (find: typeof principalsByKeys): KeyLookup =>
    createBatcher({
      async work(calls) {
        const hashes = [...new Set(calls.map(({ hash }) => hash))]
        const now = new Date(Math.max(...calls.map((call) => call.now.getTime())))
        const rows = new Map((await find(database, hashes, now)).map((row) => [row.hash, row]))
        return calls.map(({ hash }) => ({ found: rows.get(hash) ?? null }))
      },
      keyOf: ({ hash }) => hash,
      weightOf: () => 1,
      isSafe: (error) => !isDatabaseUnavailable(error),
    })
  return { key: lookUp(principalsByKeys), session: lookUp(principalsBySessions) }
}

/** @throws RequestError unauthorized */
export async function authenticate(
  { tx, credentials }: { tx: Tx; credentials: Credentials },
  authorization: string | undefined,
  now: Date,
): Promise<Principal> {
  const token = BEARER.exec(authorization ?? '')?.[1]
  const kind = token === undefined ? null : credentialKind(token)
  if (token !== undefined && kind !== null) {
    const { found } = await credentials[kind]({ hash: credentialHash(token).toString('hex'), now })
    if (found) {
      const { id, team_id, scopes, domain, person, last_used_at } = found
      if (kind === 'key' && isNewHour(last_used_at, now)) await noteKeyUse(tx, id, hourOf(now))
      const shown = displayPrefix(token)
      return { kind, team_id, scopes, domain, key: kind === 'key' ? shown : null, actor: person ?? shown }
    }
  }
  throw new RequestError('unauthorized', TEXTS.noCredential)
}

/** @throws RequestError insufficient_scope */
export function authorize(principal: Principal, access: PrivateAccess): void {
  if (!access.kinds.includes(principal.kind)) {
    throw new RequestError('insufficient_scope', TEXTS.keysOnly)
  }
  const [scope, what] =
    principal.kind === 'session'
      ? [access.session_scope ?? access.scope, 'session token']
      : [access.scope, 'key']
  if (scope === null || principal.scopes.includes(scope)) return
  throw new RequestError('insufficient_scope', fill(TEXTS.missingScope, { credential: what, scope }))
}

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()

/** Compares two secrets in constant time. */
export const sameSecret = (given: string, expected: string): boolean =>
  timingSafeEqual(digest(given), digest(expected))

/** @throws RequestError unauthorized, also if no token is configured */
export function assertBearer(authorization: string | undefined, token: string | null): void {
  const given = BEARER.exec(authorization ?? '')?.[1]
  if (given !== undefined && token !== null && sameSecret(given, token)) return
  throw new RequestError('unauthorized', TEXTS.ownToken)
}
