/** Verbs of `broadcast`: one template to all contacts of some topics, as the API's calls do it. */
import type { Command } from 'commander'
import type { By } from '../accounts/audit/record.ts'
import { teamOrRefusal } from '../accounts/teams/view.ts'
import { createVersions } from '../content/templates/versions.ts'
import { type BroadcastRow, broadcastsOfTeam } from '../messages/broadcasts/broadcasts.sql.ts'
import { broadcastOrRefusal, changeBroadcast, createBroadcast } from '../messages/broadcasts/draft.ts'
import { readChange, readNew } from '../messages/broadcasts/fields.ts'
import { sendTest } from '../messages/broadcasts/send-test.ts'
import { skipsOf } from '../messages/broadcasts/skips.sql.ts'
import {
  cancelBroadcast,
  pauseBroadcast,
  resumeBroadcast,
  sendBroadcast,
} from '../messages/broadcasts/start.ts'
import { broadcastView, broadcastViews } from '../messages/broadcasts/view.ts'
import type { Admin } from './context.ts'
import { fileJson, instant, mailboxes, uuid } from './input.ts'
import { answer, type Verbs } from './noun.ts'

const LIST_LENGTH = 1_000

const acting = (team: string) => ({ team_id: team, domain: null })

/** The broadcast as it is after a change. */
const changed = async (admin: Admin, work: (by: By) => Promise<BroadcastRow>) =>
  broadcastView(await admin.database(), await admin.transaction(work))

const ofTeam = (broadcast: Command, name: string, description: string) =>
  broadcast.command(name).description(description).argument('<team>', 'id of the team', uuid)
const ofOne = (broadcast: Command, name: string, description: string) =>
  ofTeam(broadcast, name, description).argument('<id>', 'id of the broadcast', uuid)

const startDeps = async (admin: Admin) => ({ queue: await admin.queue(), publicUrl: admin.publicUrl ?? null })

const drafts: Verbs = (broadcast, admin) => {
  ofTeam(broadcast, 'create', 'make a draft')
    .requiredOption('--file <file>', 'what the API takes, as JSON; - reads standard input')
    .action(
      answer(async (team: string, { file }: { file: string }) => {
        const draft = readNew(await fileJson(file))
        await teamOrRefusal(await admin.database(), team)
        return changed(admin, async (by) => (await createBroadcast(by, acting(team), draft)).row)
      }),
    )

  ofOne(broadcast, 'update', 'change a draft')
    .requiredOption('--file <file>', 'the fields to change, as JSON; - reads standard input')
    .action(
      answer(async (team: string, id: string, { file }: { file: string }) => {
        const fields = readChange(await fileJson(file))
        return changed(admin, (by) => changeBroadcast(by, acting(team), id, fields))
      }),
    )

  ofTeam(broadcast, 'list', 'the broadcasts of a team, newest first').action(
    answer(async (team: string) => {
      const database = await admin.database()
      await teamOrRefusal(database, team)
      return broadcastViews(
        database,
        await broadcastsOfTeam(database, team, { limit: LIST_LENGTH, offset: 0 }),
      )
    }),
  )

  ofOne(broadcast, 'show', 'a broadcast with its figures').action(
    answer(async (team: string, id: string) => {
      const database = await admin.database()
      return broadcastView(database, await broadcastOrRefusal(database, team, id))
    }),
  )
}

const states: Verbs = (broadcast, admin) => {
  ofOne(broadcast, 'start', 'start a draft, or schedule it; its links begin with PUBLIC_URL')
    .option('--at <time>', 'when it begins', instant)
    .action(
      answer(async (team: string, id: string, { at: time }: { at?: Date }) => {
        const deps = await startDeps(admin)
        return changed(admin, (by) =>
          sendBroadcast({ ...by, ...deps }, acting(team), id, { send_at: time?.toISOString() }),
        )
      }),
    )

  ofOne(broadcast, 'pause', 'pause it: emails that are in hand still go').action(
    answer((team: string, id: string) => changed(admin, (by) => pauseBroadcast(by, acting(team), id))),
  )

  ofOne(broadcast, 'resume', 'go on with a paused one').action(
    answer(async (team: string, id: string) => {
      const { queue } = await startDeps(admin)
      return changed(admin, (by) => resumeBroadcast({ ...by, queue }, acting(team), id))
    }),
  )

  ofOne(broadcast, 'cancel', 'end it for good: emails that wait are withdrawn').action(
    answer((team: string, id: string) => changed(admin, (by) => cancelBroadcast(by, acting(team), id))),
  )
}

const looks: Verbs = (broadcast, admin) => {
  ofOne(broadcast, 'test', 'send it to up to 5 addresses as a test')
    .requiredOption('--to <addresses>', 'separated by commas', mailboxes)
    .option('--contact <email>', 'whose properties fill the slots')
    .action(
      answer(async (team: string, id: string, { to, contact }: { to: string[]; contact?: string }) => {
        const deps = {
          ...(await startDeps(admin)),
          versions: createVersions(),
          secrets: await admin.secrets(),
        }
        const ids = await admin.transaction((by) =>
          sendTest({ ...by, ...deps }, acting(team), id, { to, contact }),
        )
        return ids.map((email_id, index) => ({ id: email_id, to: to[index] }))
      }),
    )

  ofOne(broadcast, 'skips', 'the contacts that it picked and that get nothing, and why').action(
    answer(async (team: string, id: string) => {
      const database = await admin.database()
      const { id: known } = await broadcastOrRefusal(database, team, id)
      return skipsOf(database, team, known)
    }),
  )
}

export const verbs: Verbs = (broadcast, admin) => {
  drafts(broadcast, admin)
  states(broadcast, admin)
  looks(broadcast, admin)
}
