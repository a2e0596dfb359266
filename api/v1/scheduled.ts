/**
 * What waits for its time, cancelled or moved: POST …/:id/cancel and PATCH …/:id, alike for every channel that sends by
 * the API. Promises: an answer never says how a message stands.
 */
import { object } from 'yup'
import type { Caller } from '../../db/accounts/audit/record.ts'
import { parse, time } from '../../db/text/fields.ts'
import type { About } from '../docs/about.ts'
import type { Principal, PrivateAccess } from '../http/auth.ts'
import { tracing } from '../http/errors.ts'
import { jsonAs } from '../http/input.ts'
import { teamRoute, type V1Route } from './deps.ts'

const moveSchema = object({ scheduled_at: time().required('${path} is required') })

/** What is done with a message that waits, by its id as it was given. */
type Acts = {
  cancel(by: Caller, principal: Principal, id: string): Promise<{ id: string }>
  move(
    by: Caller,
    principal: Principal,
    move: { id: string; scheduled_at: string },
  ): Promise<{ id: string; scheduled_at: string }>
}

type Of = { path: string; access: PrivateAccess; about: { cancel: About; move: About } }

/** The routes of a channel. @param path that of its messages. */
export const scheduledRoutes = ({ path, access, about }: Of, { cancel, move }: Acts): readonly V1Route[] => [
  teamRoute({
    method: 'POST',
    path: `${path}/:id/cancel`,
    about: about.cancel,
    access,
    async handle({ params, principal, now }, { database }) {
      const body = await database.transaction((tx) =>
        cancel({ tx, now, actor: principal.actor }, principal, params.id ?? ''),
      )
      return { status: 200, body, trace: tracing([body.id]) }
    },
  }),
  teamRoute({
    method: 'PATCH',
    path: `${path}/:id`,
    about: about.move,
    access,
    body: jsonAs(moveSchema, (value) => parse(moveSchema, value)),
    async handle({ params, principal, now, body: { scheduled_at } }, { database }) {
      const body = await database.transaction((tx) =>
        move({ tx, now, actor: principal.actor }, principal, { id: params.id ?? '', scheduled_at }),
      )
      return { status: 200, body, trace: tracing([body.id]) }
    },
  }),
]
