/** Lists WhatsApp templates with the state and slots that the provider has, syncs them and adds new ones. */

import { RequestError } from '../../../db/errors.ts'
import { createWhatsappTemplate } from '../../../db/messages/whatsapp/save-template.ts'
import type { TemplateState } from '../../../db/messages/whatsapp/status.ts'
import {
  requestAdd,
  requestSync,
  type SyncOutput,
  syncFound,
  withoutOwn,
} from '../../../db/messages/whatsapp/sync-templates.ts'
import {
  type WhatsappTemplateRow,
  whatsappTemplatesOfTeam,
} from '../../../db/messages/whatsapp/templates.sql.ts'
import type { Tx } from '../../../db/postgres/pool.ts'
import { isUuid } from '../../../db/validation/strings.ts'
import { writePost } from '../../docs/samples.ts'
import { formatAge, headed, status, text, time } from '../components/cell.ts'
import type { Section } from '../components/section.ts'
import { jsonTyped } from '../components/typed.ts'
import { bubbleSection, sampleBody, textFacts } from '../components/whatsapp-bubble.ts'
import {
  action,
  buildAlerts,
  buildFacts,
  buildForm,
  buildTable,
  button,
  buttonCell,
  compact,
  field,
  get,
} from '../server/builders.ts'
import { type PageTeam, redirect, show, teamPath } from '../server/page.ts'
import { sortableTable } from '../server/sort.ts'
import { TEXTS } from '../texts.ts'
import { languageLinks, readLanguage } from './request-language.ts'

const PATH = '/teams/:team/whatsapp-templates'

/** Formats a category of Meta, such as `UTILITY`. */
const describeCategory = (category: string | null): string => headed((category ?? '').toLowerCase())

type SyncState = SyncOutput | 'waiting' | { fault: string }

/** Returns the result of a sync, or null without an ID. */
async function findSync(tx: Tx, teamId: string, id: string | null): Promise<SyncState | null> {
  if (id === null || !isUuid(id)) return null
  try {
    return (await syncFound(tx, teamId, id)) ?? 'waiting'
  } catch (error) {
    if (error instanceof RequestError) return { fault: error.message }
    throw error
  }
}

/** Lists templates of the account that the team doesn't have, from the last sync. */
function availableSection(
  sync: SyncState,
  own: readonly { name: string; language: string }[],
  here: string,
  canAdd: boolean,
): Section {
  if (sync !== 'waiting' && 'fault' in sync)
    return { kind: 'alerts', alerts: [{ tone: 'warn', title: 'The sync failed', text: sync.fault }] }
  return buildTable(
    sync === 'waiting' ? [] : withoutOwn(sync.available ?? [], own),
    ({ name, language, category, status: state }) => ({
      Template: text(name, { detail: language }),
      Category: text(describeCategory(category)),
      Status: status(state),
      Add: canAdd && buttonCell(`${here}/available?${new URLSearchParams({ name, language })}`, 'Add'),
    }),
    {
      ...{ id: 'available', title: 'Available', live: sync === 'waiting' },
      note: 'Templates that are in the WhatsApp account, but not in this team.',
      empty: sync === 'waiting' ? 'Waiting for Meta.' : 'The team has all templates of its account.',
    },
  )
}

function syncWords(templates: readonly { synced_at: string | null }[], now: Date): string {
  const last = templates
    .flatMap(({ synced_at }) => synced_at ?? [])
    .toSorted()
    .at(-1)
  return last === undefined ? 'A sync updates their states here.' : `Last sync: ${formatAge(last, now)}.`
}

const list = get('viewer', PATH, async (request, { database }) => {
  const { team, now, query } = request
  const found = await findSync(database, team.id, query.get('sync'))
  const templates = await whatsappTemplatesOfTeam(database, team.id)
  const here = teamPath(team, 'whatsapp-templates')
  const edits = team.role !== 'viewer'
  return show({
    title: 'WhatsApp templates',
    lead: `Templates are created and approved at Meta. ${syncWords(templates, now)}`,
    actions: {
      forms: compact([
        edits &&
          button(`${here}/sync`, 'Sync now', {
            tone: templates.length === 0 && !found ? undefined : 'quiet',
          }),
      ]),
    },
    sections: compact([
      sortableTable(
        request,
        templates,
        (template) => ({
          Template: text(template.name, {
            href: teamPath(team, 'whatsapp-templates', template.id),
            detail: template.language,
          }),
          Text: text(sampleBody(template.definition)),
          Category: text(describeCategory(template.category)),
          Status: status(template.status, { detail: template.unsupported ?? undefined }),
        }),
        {
          grow: ['Text'],
          empty: edits
            ? 'No templates yet. Create them in WhatsApp Manager, then sync them.'
            : 'No templates yet.',
        },
      ),
      found && availableSection(found, templates, here, edits),
      edits &&
        buildForm(here, 'Add template', {
          title: 'Add a template as JSON',
          folded: 'menu',
          fields: [
            field('definition', 'Meta’s template object, as JSON', {
              type: 'textarea',
              rows: 14,
              code: true,
              required: true,
            }),
          ],
        }),
    ]),
  })
})

const SENDABLE: Readonly<Record<TemplateState, string>> = {
  approved: 'It can be sent.',
  pending: 'Meta hasn’t approved it yet, so it can’t be sent.',
  rejected: 'Meta rejected it, so it can’t be sent.',
  paused: 'Meta has paused it, so it can’t be sent.',
  disabled: 'Meta has disabled it, so it can’t be sent.',
}

type Sendable = Pick<WhatsappTemplateRow, 'id' | 'slots'>

export const isSendable = ({
  status,
  unsupported,
}: Pick<WhatsappTemplateRow, 'status' | 'unsupported'>): boolean =>
  status === 'approved' && unsupported === null

/** Writes a request that sends a template. */
export function sampleRequest({ id, slots }: Sendable, language: Parameters<typeof writePost>[0]): string {
  const parameters = Object.fromEntries(slots.map((slot) => [slot, '…']))
  return writePost(language, '/v1/whatsapp/messages', { template_id: id, to: ['+15555550101'], parameters })
}

const template = get('viewer', `${PATH}/:id`, async (request, { database }) => {
  const { team, params, now } = request
  const found = (await whatsappTemplatesOfTeam(database, team.id)).find(({ id }) => id === params.id)
  if (!found) throw new RequestError('not_found', TEXTS.noTemplate)
  return show({
    title: found.name,
    state: status(found.status),
    lead: found.unsupported ? `Can’t be sent: ${found.unsupported}` : SENDABLE[found.status],
    back: { href: teamPath(team, 'whatsapp-templates'), label: 'WhatsApp templates' },
    actions: {
      links: [
        {
          href: `${teamPath(team, 'whatsapp')}?${new URLSearchParams({ template: found.id })}`,
          label: 'Messages with this template',
        },
      ],
    },
    sections: [
      ...buildAlerts([
        found.announced_category !== null && {
          tone: 'warn',
          title: `Meta will change the category to ${describeCategory(found.announced_category)}`,
          text: 'Messages with this template may then cost more. If the new category is wrong, request a review in WhatsApp Manager.',
        },
        found.fault !== null && { tone: 'warn', title: 'Meta’s last error:', text: found.fault },
      ]),
      ...bubbleSection(found.definition, 'Message with sample values'),
      ...textFacts(found.definition),
      ...compact<Section>([
        isSendable(found) && [
          {
            kind: 'tabs',
            id: 'request',
            title: 'Example request',
            links: languageLinks(request, '#request'),
          },
          { kind: 'code', code: sampleRequest(found, readLanguage(request)) },
        ],
      ]),
      {
        kind: 'code',
        title: 'Meta’s template object',
        fold: true,
        code: JSON.stringify(found.definition, null, 2),
      },
    ],
    aside: [
      buildFacts({
        Language: text(found.language),
        Category: text(describeCategory(found.category)),
        Quality: found.quality !== null && text(found.quality),
        Variables: text(found.slots.join(', ')),
        'Last sync': time(found.synced_at, now),
        ID: text(found.id, { code: true, copy: true }),
      }),
    ],
  })
})

const add = action('editor', PATH, async (by, { team, form }) => {
  const definition = jsonTyped(form.get('definition'), 'template')
  const added = await createWhatsappTemplate(by, team.id, definition)
  return redirect(
    teamPath(team, 'whatsapp-templates', added.id),
    `${added.name} was added. It is ${added.status}.`,
  )
})

const sync = action('editor', `${PATH}/sync`, async (by, { team }) => {
  const asked = await requestSync(by, team.id)
  const said =
    asked === null ? 'Templates of a test team aren’t synced.' : 'A worker is syncing the templates.'
  return redirect(syncPath(team, asked), said)
})

const addAvailable = action('editor', `${PATH}/available`, async (by, { team, query }) => {
  const wanted = { name: query.get('name') ?? '', language: query.get('language') ?? '' }
  const asked = await requestAdd(by, team.id, wanted)
  return redirect(syncPath(team, asked), `A worker is adding ${wanted.name}.`)
})

const syncPath = (team: PageTeam, id: string | null): string =>
  `${teamPath(team, 'whatsapp-templates')}${id === null ? '' : `?${new URLSearchParams({ sync: id })}`}`

export const whatsappTemplatePages = [list, template, add, sync, addAvailable]
