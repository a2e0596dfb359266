/**
 * Files whose uploads, sends and deliveries are interrupted by kills. No file may be lost, left over or
 * missing from the counts.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { collectFiles } from '../../../db/content/files/collect.ts'
import { deleteAbandonedFiles } from '../../../db/content/files/files.sql.ts'
import type { TestTeam } from '../../support/service.ts'
import { inFlight, settle } from '../account.ts'
import { type Fault, inTurn, meanwhile } from '../fault.ts'
import { insist, type Load } from '../load.ts'
import type { World } from '../world.ts'

const CLIENTS = 6
const DAY = 86_400_000

/** Uploads bytes until the final response. @returns their id */
async function insistOnUpload(world: World, { key }: TestTeam, bytes: Uint8Array): Promise<string> {
  for (let nth = 0; !world.closed.aborted; nth++) {
    const base = inTurn(world.apis, nth).base()
    const reply = await fetch(`${base}/v1/attachments?filename=large.bin`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${key}` },
      body: bytes as Uint8Array<ArrayBuffer>,
      signal: AbortSignal.timeout(35_000),
    }).catch(() => null)
    if (reply?.status === 201) return ((await reply.json()) as { id: string }).id
    await reply?.body?.cancel()
    if (reply && reply.status < 500) throw new Error(`an upload was answered ${reply.status}`)
    await sleep(100)
  }
  throw world.closed.reason
}

/** Sends emails with an uploaded file and an inline one. Some files are in several sends at once. */
async function sendLarge(world: World, team: TestTeam, count: number): Promise<Load> {
  const load: Load = { accepted: new Map(), wrong: [] }
  const shared = randomBytes(500_000)
  let left = count
  const client = async (): Promise<void> => {
    while (left-- > 0) {
      const attachment_id = await insistOnUpload(world, team, left % 3 ? randomBytes(1_000_000) : shared)
      const content = (left % 2 ? shared : randomBytes(200_000)).toString('base64')
      const attachments = [{ attachment_id }, { filename: 'inline.bin', content }]
      await insist(world, team, randomUUID(), load, { attachments })
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
  return load
}

/** Counts contradictions between the storage count, files and their bytes. */
async function contradictions({ sql }: World, { id }: TestTeam): Promise<number> {
  const [row] = await sql<{ wrong: string }>(
    `select (select count(*) from (
        select f.size, f.sha256, count(c.*) as parts, sum(length(c.bytes)) as bytes,
          sha256(string_agg(c.bytes, '' order by c.part)) as digest
        from files f left join file_chunks c on c.team_id = f.team_id and c.file_id = f.id
        where f.team_id = $1 and f.state = 'ready' group by f.team_id, f.id) f
      where f.size is distinct from f.bytes or f.sha256 is distinct from f.digest)
      + (select count(*) from allowances a where a.team_id = $1 and a.storage_used <> (
        select coalesce(sum(size), 0) from files f where f.team_id = $1 and f.state = 'ready')) as wrong`,
    [id],
  )
  return Number(row?.wrong)
}

/** Counts a team's stored files and bytes, in any state. */
async function bytesOf({ sql }: World, { id }: TestTeam): Promise<{ files: number; bytes: number }> {
  const [row] = await sql<{ files: string; bytes: string }>(
    `select (select count(*) from files where team_id = $1) as files, (
      select coalesce(sum(length(bytes)), 0) from file_chunks where team_id = $1) as bytes`,
    [id],
  )
  return { files: Number(row?.files), bytes: Number(row?.bytes) }
}

/** Returns the files that remain after an hour, and after days without use. */
async function leftOver(world: World, team: TestTeam): Promise<{ orphaned: number; unfreed: number }> {
  const later = new Date(Date.now() + DAY)
  await deleteAbandonedFiles(world.database, later)
  const [row] = await world.sql<{ bytes: string }>(
    `select coalesce(sum(length(c.bytes)), 0) as bytes from file_chunks c
      join files f on f.team_id = c.team_id and f.id = c.file_id
      where c.team_id = $1 and f.state <> 'ready'`,
    [team.id],
  )
  await world.sql(`update files set last_used_at = now() - interval '10 days' where team_id = $1`, [team.id])
  await world.sql('update uploads set expires_at = now() where team_id = $1', [team.id])
  await world.sql('update files set kept_until = now() where team_id = $1 and kept_until is not null', [
    team.id,
  ])
  await collectFiles(world.database, 3, new Date())
  const { files, bytes } = await bytesOf(world, team)
  const [account] = await world.sql<{ used: string }>(
    'select storage_used as used from allowances where team_id = $1',
    [team.id],
  )
  return { orphaned: Number(row?.bytes), unfreed: files + bytes + Number(account?.used) }
}

export const fileFaults: readonly Fault[] = [
  {
    id: 'H/files',
    words: 'uploads and emails with large files: kill -9 of a worker or an API process every 1.5 s',
    load: '150 uploads of 1 MB, 150 emails with 2 files',
    async run(world, scale) {
      const team = await world.team()
      const work = sendLarge(world, team, 150 * scale)
      let kills = 0
      const { result: load, strikes } = await meanwhile(work, 1_500, (nth) => {
        const kind = inTurn([world.workers, world.apis], nth)
        // One API process always stays up, even if the other starts slowly.
        if (kind === world.apis && !kind.every((member) => member.isUp())) return
        const isKilled = inTurn(kind, nth >> 1).signal('SIGKILL')
        if (isKilled && kind === world.workers) kills += 1
      })
      const account = await settle(world, load)
      const wrong = await contradictions(world, team)
      const { bytes } = await bytesOf(world, team)
      const { orphaned, unfreed } = await leftOver(world, team)
      return {
        ...account,
        over: account.over + wrong + orphaned + unfreed,
        note: `${strikes} kills; ${Math.round(bytes / 1e6)} MB stored, orphaned after an hour ${orphaned} bytes, after collecting ${unfreed}`,
        allowed: inFlight(kills),
        limit: 60,
      }
    },
  },
]
