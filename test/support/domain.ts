/**
 * Creates verified sending domains for tests that are not about domains. The domains of one process share a
 * key pair, because generating one needs a tenth of a second of CPU time. Each is encrypted for its team, as
 * addDomain does it.
 */
import { createPublicKey, type KeyObject } from 'node:crypto'
import { sql } from 'slonik'
import { v7 as uuidv7 } from 'uuid'
import { string } from 'yup'
import { makeDkimKey, openKey, sealKey } from '../../db/accounts/domains/dkim.ts'
import { type DomainRow, insertDomain } from '../../db/accounts/domains/domains.sql.ts'
import type { Database, Tx } from '../../db/postgres/pool.ts'
import { row } from '../../db/postgres/rows.ts'
import { createSecrets, type Secrets } from '../../db/process/secrets.ts'
import { canary } from './canary.ts'
import { SECRET_KEY } from './environment.ts'

/** The same for all domains, so that tests know the record's name. */
const SELECTOR = 'hg1'

const ours = createSecrets(SECRET_KEY)
const nobody = { team_id: '', name: '' }
let drawn: ReturnType<typeof makeDkimKey> | undefined

/** Gives a team a domain, as `domain add --verified` would. @param name in ASCII. */
export async function verifiedDomain(
  { tx, secrets, now }: { tx: Tx; secrets: Secrets; now: Date },
  teamId: string,
  name: string,
): Promise<DomainRow> {
  drawn ??= makeDkimKey(ours, nobody)
  const { dkim_private_key, ...key } = await drawn
  const key_der = openKey(ours, nobody, dkim_private_key)
  // A line of the key in a PEM file.
  canary.secrets(key_der.toString('base64').slice(64, 128))
  const sealed = sealKey(secrets, { team_id: teamId, name }, key_der)
  const dkim = { ...key, dkim_selector: SELECTOR, dkim_private_key: sealed }
  const domain = { id: uuidv7(), name, status: 'verified' as const, ...dkim }
  return insertDomain(tx, teamId, domain, now)
}

/** Returns the public key of a team's only domain. */
export async function publicKeyOf({ database }: { database: Database }, teamId: string): Promise<KeyObject> {
  const der = await database.oneFirst(sql.type(row({ key: string() }))`
    select dkim_public_key as key from domains where team_id = ${teamId}`)
  return createPublicKey({ key: Buffer.from(der, 'base64'), format: 'der', type: 'spki' })
}
