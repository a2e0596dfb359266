/** POST …/:id/cancel and PATCH …/:id of scheduled messages. A response never contains the status of a message. */
import type { ChannelName } from '../../db/channels/list.ts'
import { cancelScheduled, moveScheduledAtRate } from '../../db/messages/scheduled.ts'
import type { About } from '../docs/about.ts'
import type { PrivateAccess } from '../http/auth.ts'
import { tracing } from '../http/errors.ts'
import { rateHeaders } from '../http/rate.ts'
import { moveBody } from './bodies.ts'
import { teamRoute, type V1Route } from './deps.ts'

type ScheduledOptions = {
  channel: ChannelName
  path: string
  access: PrivateAccess
  about: { cancel: About; move: About }
}

export const scheduledRoutes = ({ channel, path, access, about }: ScheduledOptions): readonly V1Route[] => [
  teamRoute({
    method: 'POST',
    path: `${path}/:id/cancel`,
    about: about.cancel,
    access,
    async handle({ params, principal, now }, { database }) {
      const { actor, team_id, domain } = principal
      const named = { channel, team_id, domain, id: params.id ?? '' }
      const body = await database.transaction((tx) => cancelScheduled({ tx, now, actor }, named))
      return { status: 200, body, trace: tracing([body.id]) }
    },
  }),
  teamRoute({
    method: 'PATCH',
    path: `${path}/:id`,
    about: about.move,
    access,
    body: moveBody,
    async handle({ params, principal, now, body: { scheduled_at } }, { database }) {
      const { actor, team_id, domain } = principal
      const named = { channel, team_id, domain, id: params.id ?? '' }
      const { moved, limit_state } = await database.transaction((tx) =>
        moveScheduledAtRate({ tx, now, actor }, named, scheduled_at),
      )
      return { status: 200, body: moved, headers: rateHeaders(limit_state), trace: tracing([moved.id]) }
    },
  }),
]
