/** The verbs `cancel` and `reschedule` of channels with scheduled messages. */
import { requireTeam } from '../accounts/teams/view.ts'
import type { ChannelName } from '../channels/list.ts'
import { cancelScheduled, moveScheduled } from '../messages/scheduled.ts'
import { exampleMoment } from '../validation/moments.ts'
import { moment, uuidArgument } from './input.ts'
import type { Noun } from './noun.ts'

/** Adds the verbs. @param noun describes one message. */
export function scheduledVerbs(
  { verb, change }: Noun,
  { channel, noun }: { channel: ChannelName; noun: string },
): void {
  const own = { ID: [`ID of the ${noun.replace(/^an? /, '')}`, uuidArgument] } as const
  verb(
    'cancel TEAM ID',
    `Cancel ${noun} that is scheduled. It no longer counts towards the quota`,
    own,
  ).action(
    change(async (by, team_id: string, id: string) => {
      await requireTeam(by.tx, team_id)
      return { ...(await cancelScheduled(by, { channel, team_id, id })), cancelled: true }
    }),
  )
  verb('reschedule TEAM ID', `Change the time of ${noun} that is scheduled`, own)
    .requiredOption('--at <time>', `the new time, such as ${exampleMoment(new Date())}`, moment)
    .action(
      change(async (by, team_id: string, id: string, { at }: { at: Date }) => {
        await requireTeam(by.tx, team_id)
        return moveScheduled(by, { channel, team_id, id }, at.toISOString())
      }),
    )
}
