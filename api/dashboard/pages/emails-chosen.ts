/** Sends emails that are selected in the list again, or deletes them. */

import { EMAIL } from '../../../db/channels/email.sql.ts'
import { RequestError } from '../../../db/errors.ts'
import { countChosen, deleteChosen, isStored, requeueChosen } from '../../../db/messages/emails/bulk.ts'
import { plural } from '../../../db/plural.ts'
import { isUuid } from '../../../db/validation/strings.ts'
import type { Form } from '../components/section.ts'
import { asActor } from '../server/action.ts'
import { action, button, compact, post } from '../server/builders.ts'
import { redirect, type TeamRequest } from '../server/page.ts'
import { TEXTS } from '../texts.ts'
import { listAddress } from './emails-filter.ts'
import { pauseWords } from './requeue.ts'
import { noneToSend } from './requeueable.ts'

/** Maximum number of selected rows. */
const MAX_CHOSEN = 50

/** Names the selected emails that aren't sent again. */
const leftOut = (count: number, cause: string): string =>
  `${plural(count, 'email')} can’t be sent again: ${cause}.`

/** Returns the selected emails. @throws RequestError bad_request if there are none. */
function readSelection(form: URLSearchParams): string[] {
  const ids = form.getAll('ids').filter((id) => isUuid(id))
  if (ids.length === 0) throw new RequestError('bad_request', TEXTS.nothingChosen)
  return ids.slice(0, MAX_CHOSEN)
}

const sendChosen = post('editor', '/teams/:team/emails/requeue', async (request, deps) => {
  const ids = readSelection(request.form)
  const changed = await asActor(request, deps, (by) =>
    requeueChosen({ ...deps, ...by }, request.team.id, ids),
  )
  const left = ids.length - changed
  const others = left > 0 ? ` ${plural(left, 'other')} can’t be sent again.` : ''
  const paused = changed > 0 ? await pauseWords(deps, EMAIL, request) : ''
  return redirect(
    listAddress(request),
    `${plural(changed, 'email')} queued to be sent again.${others}${paused}`,
  )
}).confirm(async ({ team, form }, deps) => {
  const ids = readSelection(form)
  const { open, suppressed } = await countChosen({ ...deps, tx: deps.database }, team.id, ids)
  if (open === 0) throw noneToSend(suppressed)
  const many = plural(open, 'email')
  const others = ids.length - open - suppressed
  return {
    question: `Send ${many} again?`,
    answer: `Send ${many} again`,
    warning: compact([
      suppressed > 0 && leftOut(suppressed, 'all recipients are suppressed'),
      others > 0 && leftOut(others, 'accepted by a provider, scheduled or expired'),
    ]).join(' '),
  }
})

const removeChosen = action('owner', '/teams/:team/emails/delete', async (by, request) => {
  const deleted = await deleteChosen(by, request.team.id, readSelection(request.form))
  return redirect(listAddress(request), `${plural(deleted, 'email')} deleted.`)
}).confirm(async ({ team, form }, { database }) => {
  const ids = readSelection(form)
  if (!(await isStored(database, team.id, ids))) throw new RequestError('invalid_state', TEXTS.noneToDelete)
  const many = plural(ids.length, 'email')
  return { question: `Delete ${many} permanently?`, answer: `Delete ${many}`, tone: 'danger' }
})

/** Returns the actions on selected emails. */
export function chosenActions(request: TeamRequest): Form[] | undefined {
  if (request.team.role === 'viewer') return undefined
  return compact([
    button(listAddress(request, 'requeue'), 'Send again', { tone: 'quiet' }),
    request.team.role === 'owner' &&
      button(listAddress(request, 'delete'), 'Delete emails', { tone: 'danger' }),
  ])
}

export const emailsChosenPages = [sendChosen, removeChosen]
