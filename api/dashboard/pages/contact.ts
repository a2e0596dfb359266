/** The page of a contact: status, suppression, topics, properties and messages, with its actions. */

import { Readable } from 'node:stream'
import disposition from 'content-disposition'
import { contactByIdentity } from '../../../db/audience/contacts/contacts.sql.ts'
import {
  changeContact,
  contactIdentity,
  contactToChange,
  removeContact,
} from '../../../db/audience/contacts/edit.ts'
import { topicsOfTeam } from '../../../db/audience/contacts/topics.sql.ts'
import { resubscribe, unsubscribe } from '../../../db/audience/subscription/subscription.ts'
import { suppressedAddress } from '../../../db/audience/suppressions/addresses.sql.ts'
import { asContact, type ContactDetail, showContact } from '../../../db/audience/suppressions/lift.ts'
import { beginBackgroundJob } from '../../../db/maintenance/background-jobs/background-jobs.ts'
import { toErasure } from '../../../db/maintenance/background-jobs/kinds.ts'
import { exportContact } from '../../../db/maintenance/retention/export.ts'
import { sentToContact } from '../../../db/messages/sent.ts'
import { serviceTime } from '../../../db/postgres/time.sql.ts'
import { parseMailbox } from '../../../db/validation/address.ts'
import { status, text, time } from '../components/cell.ts'
import { findName } from '../components/names.ts'
import {
  changedProperties,
  changedTopics,
  inOrder,
  propertyFields,
  readTopics,
  shownField,
} from '../components/properties.ts'
import type { Actions, Section, View } from '../components/section.ts'
import {
  action,
  buildAlerts,
  buildFacts,
  buildForm,
  buildTable,
  button,
  compact,
  get,
  hidden,
  post,
} from '../server/builders.ts'
import type { PageDeps } from '../server/deps.ts'
import { backTo } from '../server/list.ts'
import { raw, redirect, show, type TeamPage, type TeamRequest, teamPath } from '../server/page.ts'
import { backgroundJobAnswer } from './background-job.ts'
import { contactPath, liftAction, liftForms, reportFact, suppressionAlert } from './contact-suppression.ts'
import { topicChoices } from './contacts.ts'
import { ALL_EMAILS } from './emails-filter.ts'

const MESSAGES_SHOWN = 20

const unsubscribedAlert = ({ status, suppression }: ContactDetail): Section[] =>
  buildAlerts([
    status === 'unsubscribed' &&
      suppression === null && {
        tone: 'warn',
        title: 'Broadcasts don’t go to this contact',
        text: 'Resubscribe them only at their request.',
      },
  ])

function actions(contact: ContactDetail, request: TeamRequest): Actions {
  const forms = compact([
    contact.status === 'subscribed' &&
      button(contactPath(request, 'unsubscribe'), 'Unsubscribe', { tone: 'quiet' }),
    contact.status === 'unsubscribed' &&
      contact.suppression === null &&
      button(contactPath(request, 'resubscribe'), 'Resubscribe', { tone: 'quiet' }),
    request.team.role === 'owner' &&
      button(contactPath(request, 'export'), 'Export personal data', {
        tone: 'quiet',
        menu: true,
        file: true,
        about: 'All data stored about this contact, as JSON.',
      }),
    button(contactPath(request, 'delete'), 'Delete contact', {
      tone: 'danger',
      about: 'Removes the contact. Emails already sent are kept.',
    }),
    request.team.role === 'owner' &&
      button(contactPath(request, 'erase'), 'Erase personal data', {
        tone: 'danger',
        about: 'Removes the contact, and their data in emails, events, reports and webhooks.',
      }),
  ])
  return { forms }
}

/** Lists messages to the contact on all channels, newest first. */
async function sent(
  contact: Pick<ContactDetail, 'email' | 'properties'>,
  { team, now }: TeamRequest,
  { database }: PageDeps,
): Promise<Section> {
  const { emails, to_numbers } = await sentToContact(database, team.id, contact, MESSAGES_SHOWN)
  const toAll = new URLSearchParams({ ...ALL_EMAILS, recipient: contact.email })
  const all = [
    ...emails.map(({ id, subject, ...rest }) => ({
      ...rest,
      channel: 'Email',
      what: text(subject || '(no subject)', { href: teamPath(team, 'emails', id) }),
    })),
    ...to_numbers.flatMap(({ channel: { title, path }, sent }) =>
      sent.map(({ id, recipient, ...rest }) => ({
        ...rest,
        channel: title,
        what: text(recipient, { href: teamPath(team, path, id) }),
      })),
    ),
  ].sort((one, other) => (one.created_at < other.created_at ? 1 : -1))
  const isMixed = all.length > emails.length
  return buildTable(
    all,
    ({ channel, what, status: word, created_at }) => ({
      Status: status(word),
      Channel: isMixed && text(channel),
      Message: what,
      Accepted: time(created_at, now),
    }),
    {
      title: 'Messages',
      main: 'Message',
      wrap: ['Message'],
      next:
        emails.length < MESSAGES_SHOWN
          ? []
          : [{ href: `${teamPath(team, 'emails')}?${toAll}`, label: 'All emails sent' }],
      empty:
        'No messages yet. Messages to phone numbers also appear here if one of the contact’s properties is a phone number such as +15551234567.',
    },
  )
}

/** Builds the page of an address that isn't a contact: the messages to it, and a button to add it. */
async function strangerView(email: string, request: TeamRequest<'email'>, deps: PageDeps): Promise<View> {
  const { team } = request
  const stored = await suppressedAddress(deps.database, team.id, contactIdentity(email))
  const found = stored ? asContact(stored) : { email, suppression: null, suppression_cause: null }
  const add = button(teamPath(team, 'contacts'), 'Add to contacts', {
    fields: [hidden('email', email, true)],
  })
  return {
    title: email,
    state: text('not a contact', { tone: 'plain' }),
    lead: 'This address isn’t a contact, so it has no topics and doesn’t receive broadcasts.',
    back: backTo(request, teamPath(team, 'contacts'), 'Contacts'),
    actions: { forms: compact([team.role !== 'viewer' && add]) },
    above: await suppressionAlert(found, request, deps),
    sections: [
      ...liftForms(found, request),
      await sent({ email, properties: {} }, request, deps),
      ...compact([found.suppression_cause?.report_id && buildFacts(reportFact(found))]),
    ],
  }
}

const page = get('viewer', '/teams/:team/contacts/:email', async (request, deps) => {
  const { team, params, now } = request
  const { database } = deps
  const identity = contactIdentity(params.email)
  const address = parseMailbox(params.email)?.address
  if (address !== undefined && !(await contactByIdentity(database, team.id, identity)))
    return show(await strangerView(address, request, deps), 404)
  const contact = await showContact(database, team.id, identity)
  const topics = await topicsOfTeam(database, team.id)
  const names = topics.filter(({ id }) => contact.topic_ids.includes(id)).map(({ name }) => name)
  const properties = inOrder(contact.properties)
  const edits = team.role !== 'viewer'
  const fields = [
    ...propertyFields(contact.properties),
    ...topicChoices(topics, contact.topic_ids),
    shownField(contact.properties, contact.topic_ids),
  ]
  const name = findName(contact.properties)
  return show({
    title: name ?? contact.email,
    lead: name === null ? undefined : contact.email,
    state: status(contact.status),
    back: backTo(request, teamPath(team, 'contacts'), 'Contacts'),
    actions: edits ? actions(contact, request) : undefined,
    above: [...unsubscribedAlert(contact), ...(await suppressionAlert(contact, request, deps))],
    sections: [...liftForms(contact, request), await sent(contact, request, deps)],
    aside: compact([
      edits &&
        buildForm(contactPath(request), 'Save changes', {
          title: 'Properties',
          rows: true,
          tone: 'quiet',
          fields,
        }),
      !edits &&
        properties.length !== 0 && {
          kind: 'facts',
          title: 'Properties',
          facts: properties.map(([label, value]) => ({ label, cell: text(value) })),
        },
      buildFacts({
        Address: text(contact.email, { copy: true }),
        Topics: !edits && text(names.join(', ')),
        Added: time(contact.created_at, now),
        Changed: time(contact.updated_at, now),
        'Suppression lifted': contact.suppression_lifted_at && time(contact.suppression_lifted_at, now),
        ...reportFact(contact),
        ID: text(contact.id, { code: true, copy: true }),
      }),
    ]),
  })
})

/** True if a form doesn't change a contact. The order of properties and topics doesn't matter. */
const isSame = (
  { properties: stored, topic_ids }: Pick<ContactDetail, 'properties' | 'topic_ids'>,
  properties: Readonly<Record<string, string>>,
  topics: readonly string[],
): boolean =>
  Object.keys(stored).length === Object.keys(properties).length &&
  Object.entries(properties).every(
    ([name, value]) => Object.hasOwn(stored, name) && stored[name] === value,
  ) &&
  new Set(topics).symmetricDifference(new Set(topic_ids)).size === 0

const change = action('editor', '/teams/:team/contacts/:email', async (by, request) => {
  const { team, params, form } = request
  const identity = contactIdentity(params.email)
  const before = await contactToChange(by.tx, team.id, identity, readTopics(form))
  const properties = changedProperties(form, before.properties)
  const topics = changedTopics(form, before.topic_ids)
  if (isSame(before, properties, topics)) return redirect(contactPath(request), 'No changes to save.')
  await changeContact(by, team.id, identity, { properties, topic_ids: topics })
  return redirect(contactPath(request), 'Contact saved.')
})

const subscription = (verb: string, change: typeof resubscribe): TeamPage =>
  action('editor', `/teams/:team/contacts/:email/${verb}`, async (by, request) => {
    await change(by, request.team.id, contactIdentity(request.params.email))
    return redirect(contactPath(request), `The contact is ${verb}d.`)
  })

const remove = action('editor', '/teams/:team/contacts/:email/delete', async (by, { team, params }) => {
  await removeContact(by, team.id, contactIdentity(params.email))
  return redirect(teamPath(team, 'contacts'), 'The contact is deleted.')
}).confirm(async ({ team, params }, { database }) => {
  const { email } = await showContact(database, team.id, contactIdentity(params.email))
  return {
    question: `Delete ${email}? Emails already sent are kept.`,
    answer: 'Delete contact',
    tone: 'danger',
  }
})

const exported = post('owner', '/teams/:team/contacts/:email/export', async (request, deps) => {
  const { team, params, person } = request
  const by = { now: await serviceTime(deps.database), actor: person.email }
  const pieces = await exportContact({ ...deps, ...by }, team.id, contactIdentity(params.email))
  const headers = {
    'Content-Type': 'application/json; charset=utf-8',
    'Content-Disposition': disposition(`contact-${params.email}.json`),
  }
  return raw(headers, Readable.from(pieces))
})

const erase = post('owner', '/teams/:team/contacts/:email/erase', async ({ team, params, person }, deps) => {
  const erasure = toErasure(deps.secrets, team.id, contactIdentity(params.email))
  const job = await beginBackgroundJob(deps, { ...erasure, actor: person.email })
  return backgroundJobAnswer(job, teamPath(team, 'contacts'))
}).confirm(({ params }) => ({
  question: `Erase all data about ${params.email}? This removes the contact, and their data in emails, events, reports and webhooks. You can’t undo this.`,
  answer: 'Erase personal data',
  tone: 'danger',
}))

export const contactPages = [
  page,
  change,
  subscription('unsubscribe', unsubscribe),
  subscription('resubscribe', resubscribe),
  liftAction,
  remove,
  exported,
  erase,
]
