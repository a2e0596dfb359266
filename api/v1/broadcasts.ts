/** The routes of broadcasts: drafts, tests, changes of state. The rules are in db/messages/broadcasts/. */
import { object } from 'yup'
import type { Caller } from '../../db/accounts/audit/record.ts'
import { type BroadcastRow, broadcastsOfTeam } from '../../db/messages/broadcasts/broadcasts.sql.ts'
import {
  type Acting,
  changeBroadcast,
  createBroadcast,
  removeBroadcast,
  requireBroadcast,
} from '../../db/messages/broadcasts/draft.ts'
import { toFields, toNew } from '../../db/messages/broadcasts/fields.ts'
import { sendTest } from '../../db/messages/broadcasts/send-test.ts'
import {
  cancelBroadcast,
  pauseBroadcast,
  resumeBroadcast,
  sendBroadcast,
} from '../../db/messages/broadcasts/start.ts'
import { broadcastView, broadcastViews } from '../../db/messages/broadcasts/view.ts'
import type { About } from '../docs/about.ts'
import { keyOnly, type Principal } from '../http/auth.ts'
import { defineQuery } from '../http/input.ts'
import { ABOUT_BROADCASTS as ABOUT } from './about-broadcasts.ts'
import { changeBody, newBody, sendBody, testBody } from './broadcast-bodies.ts'
import { asClient, teamRoute, type V1Deps, type V1Route } from './deps.ts'
import { paging, readPage } from './paging.ts'

const toActing = ({ team_id, domain }: Principal): Acting => ({ team_id, domain })

/** Declares a POST that changes the state of a broadcast. It returns the broadcast after the change. */
const stateRoute = (
  { verb, about }: { verb: string; about: About },
  act: (deps: V1Deps & Caller, acting: Acting, id: string) => Promise<BroadcastRow>,
): V1Route =>
  teamRoute({
    method: 'POST',
    path: `/v1/broadcasts/:id/${verb}`,
    about,
    access: keyOnly('broadcasts:send'),
    async handle({ params, principal, now }, deps) {
      const row = await asClient(deps.database, now, (by) =>
        act({ ...deps, ...by }, toActing(principal), params.id ?? ''),
      )
      return { status: 200, body: await broadcastView(deps.database, row) }
    },
  })

const draftRoutes: readonly V1Route[] = [
  teamRoute({
    method: 'POST',
    path: '/v1/broadcasts',
    about: ABOUT.createBroadcast,
    access: keyOnly('broadcasts:write'),
    body: newBody,
    async handle({ body, principal, now }, deps) {
      const draft = toNew(body, deps.reservedHeaders)
      const { row, isNew } = await asClient(deps.database, now, (by) =>
        createBroadcast(by, toActing(principal), draft),
      )
      return { status: isNew ? 201 : 200, body: await broadcastView(deps.database, row) }
    },
  }),
  teamRoute({
    method: 'GET',
    path: '/v1/broadcasts',
    about: ABOUT.listBroadcasts,
    access: keyOnly('broadcasts:read'),
    query: defineQuery(object(paging())),
    async handle({ query, principal }, { database }) {
      const { rows, next } = await readPage(query, (page) =>
        broadcastsOfTeam(database, principal.team_id, page),
      )
      return { status: 200, body: { data: await broadcastViews(database, rows), ...next } }
    },
  }),
  teamRoute({
    method: 'GET',
    path: '/v1/broadcasts/:id',
    about: ABOUT.getBroadcast,
    access: keyOnly('broadcasts:read'),
    async handle({ params, principal }, { database }) {
      const row = await requireBroadcast(database, principal.team_id, params.id ?? '')
      return { status: 200, body: await broadcastView(database, row) }
    },
  }),
  teamRoute({
    method: 'PATCH',
    path: '/v1/broadcasts/:id',
    about: ABOUT.changeBroadcast,
    access: keyOnly('broadcasts:write'),
    body: changeBody,
    async handle({ body, params, principal, now }, deps) {
      const fields = toFields(body, deps.reservedHeaders)
      const row = await asClient(deps.database, now, (by) =>
        changeBroadcast(by, toActing(principal), params.id ?? '', fields),
      )
      return { status: 200, body: await broadcastView(deps.database, row) }
    },
  }),
  teamRoute({
    method: 'DELETE',
    path: '/v1/broadcasts/:id',
    about: ABOUT.deleteBroadcast,
    access: keyOnly('broadcasts:write'),
    async handle({ params, principal, now }, { database }) {
      await asClient(database, now, (by) => removeBroadcast(by, toActing(principal), params.id ?? ''))
      return { status: 204 }
    },
  }),
]

export const broadcastRoutes: readonly V1Route[] = [
  ...draftRoutes,
  teamRoute({
    method: 'POST',
    path: '/v1/broadcasts/:id/test',
    about: ABOUT.testBroadcast,
    access: keyOnly('broadcasts:send'),
    body: testBody,
    async handle({ body, params, principal, now }, deps) {
      const { to, contact } = body
      const ids = await asClient(deps.database, now, (by) =>
        sendTest({ ...deps, ...by }, toActing(principal), params.id ?? '', { to, contact }),
      )
      return { status: 200, body: { data: ids.map((id, index) => ({ index, id })) } }
    },
  }),
  teamRoute({
    method: 'POST',
    path: '/v1/broadcasts/:id/send',
    about: ABOUT.sendBroadcast,
    access: keyOnly('broadcasts:send'),
    body: sendBody,
    searches: true,
    async handle({ body, params, principal, now }, deps) {
      const row = await asClient(deps.database, now, (by) =>
        sendBroadcast({ ...deps, ...by }, toActing(principal), params.id ?? '', body),
      )
      return { status: 202, body: await broadcastView(deps.database, row) }
    },
  }),
  stateRoute({ verb: 'pause', about: ABOUT.pauseBroadcast }, pauseBroadcast),
  stateRoute({ verb: 'resume', about: ABOUT.resumeBroadcast }, resumeBroadcast),
  stateRoute({ verb: 'cancel', about: ABOUT.cancelBroadcast }, cancelBroadcast),
]
