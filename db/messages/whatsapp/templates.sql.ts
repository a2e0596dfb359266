/** Rows of WhatsApp templates. */
import { sql } from 'slonik'
import { array, boolean, type InferType, mixed, number, object, string } from 'yup'
import { ofTestTeam, REF } from '../../channels/channel.sql.ts'
import { hasListeners } from '../../channels/events/webhooks.sql.ts'
import type { Tx } from '../../postgres/pool.ts'
import { row, rowsOf, teamIdRow } from '../../postgres/rows.ts'
import { MESSAGE_REF, type MessageRef } from './messages.sql.ts'
import { TEMPLATE_STATES, type TemplateState } from './status.ts'
import { hasNewParts, type TemplateParts, type TemplateShape } from './template.ts'

const templateRow = row({
  team_id: string(),
  id: string(),
  name: string(),
  language: string(),
  category: string().nullable(),
  status: string().oneOf(TEMPLATE_STATES),
  definition: mixed<Record<string, unknown>>(),
  slots: array(string()),
  url_buttons: array(number()),
  parts: mixed<TemplateParts>().nullable(),
  unsupported: string().nullable(),
  fault: string().nullable(),
  created_at: string(),
  updated_at: string(),
  synced_at: string().nullable(),
  quality: string().nullable(),
  announced_category: string().nullable(),
})
export type WhatsappTemplateRow = InferType<typeof templateRow>

/** The reason that 0.1.0 reads for a template it can't send. Later versions ignore it. */
const NEWER = 'a newer version sends it'
const reasonFor = ({ unsupported, parts }: TemplateContent): string | null =>
  unsupported ?? (hasNewParts(parts) ? NEWER : null)

const templateColumns = sql.fragment`
  t.team_id, t.id, t.name, t.language, t.category, t.status, t.definition, t.slots, t.url_buttons, t.parts,
  nullif(t.unsupported, ${NEWER}) as unsupported, t.fault, t.created_at, t.updated_at, t.synced_at, t.quality,
  t.announced_category`

export type TemplateContent = TemplateShape &
  Pick<WhatsappTemplateRow, 'name' | 'language' | 'category' | 'status' | 'definition'>

/** Stores a template. @returns the row, or null when the team has one of this name and language. */
export const insertWhatsappTemplate = (
  tx: Tx,
  teamId: string,
  id: string,
  content: TemplateContent,
  now: Date,
) =>
  tx.maybeOne(sql.type(templateRow)`
    insert into whatsapp_templates as t (
      team_id, id, name, language, category, status, status_at, definition, slots, url_buttons, parts,
      unsupported, created_at, updated_at, account_id)
    values (${teamId}, ${id}, ${content.name}, ${content.language}, ${content.category}, ${content.status},
      ${sql.timestamp(now)}, ${JSON.stringify(content.definition)}, ${sql.array(content.slots, 'text')},
      ${sql.array(content.url_buttons, 'int2')}, ${JSON.stringify(content.parts)}, ${reasonFor(content)}, ${sql.timestamp(now)}, ${sql.timestamp(now)}, (
        select n.account_id from teams t join whatsapp_numbers n on n.name = t.whatsapp_number where t.id = ${teamId}))
    on conflict (team_id, name, language) do nothing
    returning ${templateColumns}`)

export const whatsappTemplatesOfTeam = (tx: Tx, teamId: string) =>
  tx.any(sql.type(templateRow)`
    select ${templateColumns} from whatsapp_templates t where t.team_id = ${teamId} order by t.id`)

/** Sets a template's state. @returns the row, or null if it doesn't exist. */
export const setTemplateStatus = (tx: Tx, teamId: string, id: string, status: TemplateState, now: Date) =>
  tx.maybeOne(sql.type(templateRow)`
    update whatsapp_templates t set
      status = ${status}, status_at = ${sql.timestamp(now)}, updated_at = ${sql.timestamp(now)}
    where t.team_id = ${teamId} and t.id = ${id}
    returning ${templateColumns}`)

const sendableRow = templateRow.pick(['team_id', 'id', 'status', 'slots', 'parts', 'unsupported']).concat(
  row({
    /** The template's account. Null means the default number's account. */
    account_id: string().nullable(),
    /** The account of the default number. Null if it is unknown. */
    default_account: string().nullable(),
  }),
)
export type SendableTemplate = InferType<typeof sendableRow>

/** Returns the data of teams' templates that accepting needs. */
export async function templatesByIds(tx: Tx, refs: readonly { team_id: string; id: string }[]) {
  const wanted = new Map(refs.map(({ team_id, id }) => [`${team_id}/${id}`, { team_id, id }]))
  return tx.any(sql.prepared('whatsapp_templates_by_ids', sendableRow)`
    select t.team_id, t.id, t.status, t.slots, t.parts, nullif(t.unsupported, ${NEWER}) as unsupported, t.account_id,
      (select account_id from whatsapp_numbers where name = 'default') as default_account
    from ${rowsOf('w', REF, [...wanted.values()])}
      join whatsapp_templates t on t.team_id = w.team_id and t.id = w.id`)
}

/** A failure of a template during delivery. A state is only set if the provider named one. */
type Finding = { status: TemplateState | null; fault: string }
export type TemplateFinding = Finding & { team_id: string; template_id: string }

export async function recordFindings(tx: Tx, findings: readonly TemplateFinding[], now: Date): Promise<void> {
  const types = { team_id: 'uuid', template_id: 'uuid', status: 'text', fault: 'text' }
  await tx.query(sql.prepared('record_whatsapp_template_findings', object())`
    update whatsapp_templates t set
      status = coalesce(f.status, t.status), fault = f.fault, updated_at = ${sql.timestamp(now)},
      status_at = case when f.status is null then t.status_at else ${sql.timestamp(now)} end
    from ${rowsOf('f', types, findings)}
    where t.team_id = f.team_id and t.id = f.template_id`)
}

/** A failure of a template in a message's report, at the provider's time. */
export type ReportedFinding = MessageRef & Finding & { occurred_at: Date }

/**
 * Stores the failures that reports show for the templates of messages, in one statement. The latest counts, by the
 * provider's times, which have no fraction of a second. Templates of another account than the number's don't change.
 */
export async function recordReportedFindings(tx: Tx, findings: readonly ReportedFinding[], now: Date) {
  const types = { ...MESSAGE_REF, status: 'text', fault: 'text', occurred_at: 'timestamptz' }
  const states = sql.array(TEMPLATE_STATES, 'text')
  await tx.query(sql.prepared('record_reported_template_findings', object())`
    with found as (
      select distinct on (r.team_id, r.template_id) r.team_id, r.template_id, f.status, f.fault, f.occurred_at as at
      from ${rowsOf('f', types, findings)}
        join whatsapp_messages m on m.team_id = f.team_id and m.id = f.message_id
        join whatsapp_requests r on r.team_id = m.team_id and r.id = m.request_id
        join whatsapp_templates t on t.team_id = r.team_id and t.id = r.template_id
        left join whatsapp_numbers n on n.phone_number_id = m.phone_number_id and n.name <> 'default'
        left join whatsapp_numbers d on d.name = 'default'
      where (m.phone_number_id is null or n.name is not null)
        and coalesce(t.account_id, d.account_id) is not distinct from coalesce(n.account_id, d.account_id)
      order by r.team_id, r.template_id, f.status is null, f.occurred_at desc, array_position(${states}, f.status) desc
    ), meant as (
      select t.team_id, t.id, f.status, f.fault, f.at from found f
        join whatsapp_templates t on t.team_id = f.team_id and t.id = f.template_id
      order by t.team_id, t.id for no key update of t
    )
    update whatsapp_templates t set
      status = coalesce(m.status, t.status), fault = m.fault, updated_at = ${sql.timestamp(now)},
      status_at = case when m.status is null then t.status_at else m.at end
    from meant m
    where t.team_id = m.team_id and t.id = m.id and (
      date_trunc('second', t.status_at) < m.at
      or date_trunc('second', t.status_at) = m.at
        and coalesce(array_position(${states}, m.status) > array_position(${states}, t.status), true))`)
}

/**
 * An event of Meta about a template. It applies to each live team of the account that has a template with this name.
 */
export type TemplateChange = {
  name: string
  language: string
  /** The account of the template. Null if Meta doesn't include it. */
  account_id: string | null
  /** The ID of the number whose own hook received it. Then it only applies to teams with this number. */
  number: string | null
  occurred_at: Date
}

export type TemplateUpdate = TemplateChange & { status: TemplateState }

/** Normalizes a language for comparison, because the provider writes it with - or _. */
export const withUnderscores = (language: string): string => language.replaceAll('-', '_')

const CHANGE = { name: 'text', language: 'text', account_id: 'text', number: 'text' }

/**
 * True if `c` is about the template `t`. Teams of the default number belong to its account. While that isn't known,
 * they match accounts that no number has.
 */
const isMeant = sql.fragment`
  t.name = c.name and replace(t.language, '-', '_') = c.language and not ${ofTestTeam} and exists (
    select from teams o left join whatsapp_numbers n on n.name = coalesce(o.whatsapp_number, 'default')
    where o.id = t.team_id and (c.number is null or n.phone_number_id = c.number) and case
      when n.account_id is not null then n.account_id = c.account_id
      else not exists (select from whatsapp_numbers where account_id = c.account_id) end)`

const meantRow = templateRow
  .pick(['team_id', 'name', 'language'])
  .concat(row({ account_id: string().nullable(), number: string().nullable() }))

const compared = <C extends TemplateChange>(changes: readonly C[]): C[] =>
  changes.map((change) => ({ ...change, language: withUnderscores(change.language) }))

/** Returns the live teams with templates that changes are about, each with the change. */
export const teamsWithTemplates = (tx: Tx, changes: readonly TemplateChange[]) =>
  tx.any(sql.prepared('teams_with_whatsapp_templates', meantRow)`
    select distinct t.team_id, c.name, c.language, c.account_id, c.number
    from ${rowsOf('c', CHANGE, compared(changes))} join whatsapp_templates t on ${isMeant}`)

const namedRow = meantRow.omit(['team_id'])

/**
 * Sets the reported states, in one statement. The latest event counts. Within one second, the precision of the
 * provider's times, the most restrictive does.
 * @returns the events that match a template, changed or not.
 */
export async function applyTemplateUpdates(tx: Tx, news: readonly TemplateUpdate[], now: Date) {
  const types = { ...CHANGE, status: 'text', occurred_at: 'timestamptz' }
  const states = sql.array(TEMPLATE_STATES, 'text')
  return tx.any(sql.prepared('apply_whatsapp_template_news', namedRow)`
    with meant as (
      select t.team_id, t.id, c.name, c.language, c.account_id, c.number, c.status, c.occurred_at as at
      from ${rowsOf('c', types, compared(news))} join whatsapp_templates t on ${isMeant}
      order by t.team_id, t.id for no key update of t
    ), latest as (
      select distinct on (team_id, id) team_id, id, status, at from meant
      order by team_id, id, at desc, array_position(${states}, status) desc
    ), changed as (
      update whatsapp_templates t set
        status = l.status, status_at = l.at, updated_at = ${sql.timestamp(now)}
      from latest l
      where t.team_id = l.team_id and t.id = l.id and (
        date_trunc('second', t.status_at) < l.at
        or date_trunc('second', t.status_at) = l.at
          and array_position(${states}, l.status) > array_position(${states}, t.status))
    )
    select distinct name, language, account_id, number from meant`)
}

/** Returns the live teams with templates whose accounts can be listed. */
export const teamsToSync = (tx: Tx) =>
  tx.anyFirst(sql.type(teamIdRow)`
    select o.id as team_id
    from teams o join whatsapp_numbers n on n.name = coalesce(o.whatsapp_number, 'default')
    where n.account_id is not null and not o.test
      and exists (select from whatsapp_templates where team_id = o.id)
    order by o.id`)

const CONTENT = {
  ...{ name: 'text', language: 'text', category: 'text', status: 'text' },
  ...{ definition: 'json', slots: 'json', url_buttons: 'json', parts: 'json', unsupported: 'text' },
}

/**
 * Updates a team's templates from the provider's list, by name and language. A state reported after the list was
 * requested stays.
 * @param account_id the account of the list. Null: that of the default number.
 * @returns the templates in the list that exist.
 */
export const refreshTemplates = (
  tx: Tx,
  teamId: string,
  contents: readonly TemplateContent[],
  { askedAt, account_id }: { askedAt: Date; account_id: string | null },
) =>
  tx.any(sql.prepared('refresh_whatsapp_templates', templateRow)`
    update whatsapp_templates t set account_id = ${account_id},
      status = case when t.status_at > ${sql.timestamp(askedAt)} then t.status else c.status end,
      status_at = greatest(t.status_at, ${sql.timestamp(askedAt)}), category = c.category, definition = c.definition,
      slots = array(select json_array_elements_text(c.slots)),
      url_buttons = array(select json_array_elements_text(c.url_buttons)::int2),
      parts = c.parts, unsupported = c.unsupported, updated_at = greatest(t.updated_at, ${sql.timestamp(askedAt)}),
      synced_at = greatest(t.synced_at, ${sql.timestamp(askedAt)}),
      fault = case when t.updated_at > ${sql.timestamp(askedAt)} then t.fault end
    from ${rowsOf(
      'c',
      CONTENT,
      contents.map((each) => ({ ...each, unsupported: reasonFor(each) })),
    )}
    where t.team_id = ${teamId} and t.name = c.name and t.language = c.language
    returning ${templateColumns}`)

/** Meta's other data about a template, with its time. `category`: the new category. */
export type TemplateFacts = TemplateChange & {
  category?: string
  announced_category?: string
  quality?: string
}

const categorizedRow = templateRow
  .pick(['team_id', 'id', 'name', 'language', 'category'])
  .concat(row({ was: string().nullable(), has_listeners: boolean() }))

/** Stores Meta's data about templates of this name. @returns each matching template, with its previous category. */
export const storeTemplateFacts = (tx: Tx, facts: TemplateFacts, now: Date) => {
  const { category = null, announced_category = null, quality = null } = facts
  const at = sql.timestamp(facts.occurred_at)
  return tx.any(sql.type(categorizedRow)`
    with meant as (
      select t.team_id, t.id, t.category as was,
        ${category}::text is not null and coalesce(t.category_at < ${at}, true) as changes
      from ${rowsOf('c', CHANGE, compared([facts]))} join whatsapp_templates t on ${isMeant}
      order by t.team_id, t.id for no key update of t
    )
    update whatsapp_templates t set
      category = case when m.changes then ${category} else t.category end,
      category_at = case when m.changes then ${at} else t.category_at end,
      announced_category = case when m.changes then null else coalesce(${announced_category}, t.announced_category) end,
      quality = coalesce(${quality}, t.quality), updated_at = ${sql.timestamp(now)}
    from meant m where t.team_id = m.team_id and t.id = m.id
    returning t.team_id, t.id, t.name, t.language, t.category, m.was,
      ${hasListeners(sql.fragment`t.team_id`)} as has_listeners`)
}
