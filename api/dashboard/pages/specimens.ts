/**
 * The pieces that pages are made of, on one page: for those who work on their looks. Only where DASHBOARD is
 * `specimens`, as `npm start` sets it.
 */
import { Refusal } from '../../../db/errors.ts'
import { number, status, text, time } from '../drawn/cell.ts'
import { daysOf, figureSections } from '../drawn/chart.ts'
import { ICONS } from '../drawn/icons.ts'
import type { Field, Section } from '../drawn/section.ts'
import { type PersonPage, redirect, show } from '../served/page.ts'

const PATH = '/specimens'
const DAYS = 30
const DAY = 86_400_000
const LONG = 'bartholomew.featherstonehaugh-cholmondeley@customer-relations.example.org'

const STATUSES = ['queued', 'sent', 'delivered', 'bounced', 'pending', 'expired']

const FIELDS: readonly Field[] = [
  { name: 'address', label: 'Address', type: 'email', required: true, hint: 'Send “no” to see its fault.' },
  { name: 'role', label: 'Role', type: 'select', options: [{ value: 'viewer', label: 'viewer' }] },
  { name: 'scopes', label: 'Permissions', type: 'checks', options: [{ value: 'a', label: 'emails:send' }] },
  { name: 'html', label: 'HTML', type: 'textarea', code: true, value: '<p>Hi {{name}}</p>' },
]

function chart(now: Date): Section[] {
  const since = new Date(now.getTime() - (DAYS - 1) * DAY)
  const figures = Array.from({ length: DAYS }, (_, at) => {
    const day = new Date(since.getTime() + at * DAY).toISOString().slice(0, 10)
    return ['delivered', 'sent', 'queued', 'bounced'].map((word, place) => ({
      day,
      status: word,
      count: Math.round((900 + 400 * Math.sin(at)) / (1 + 6 * place)),
    }))
  }).flat()
  return figureSections('Chart', daysOf(figures, since, DAYS))
}

function table(now: Date): Section {
  const ago = (minutes: number) => new Date(now.getTime() - minutes * 60_000).toISOString()
  return {
    kind: 'table',
    title: 'Rows',
    columns: [
      { label: 'Status' },
      { label: 'Recipient' },
      { label: 'Subject' },
      { label: 'Opens', number: true },
      { label: 'Accepted' },
      { label: '' },
    ],
    rows: STATUSES.map((word, at) => ({
      cells: [
        status(word),
        text(at % 2 === 0 ? LONG : 'd@example.org'),
        text('Your invoice 2026-1184 from Northwind Traders International GmbH', { href: PATH }),
        number(at * 1_234),
        time(ago(at * at * 300), now),
        { text: '', button: { action: PATH, label: 'Revoke', tone: 'quiet', confirm: 'Revoke this one?' } },
      ],
    })),
    next: [
      { href: PATH, label: 'First' },
      { href: PATH, label: 'Newer', rel: 'prev' },
      { href: PATH, label: 'Older', rel: 'next' },
    ],
    empty: '',
  }
}

const controls = (): Section[] => [
  {
    kind: 'tabs',
    title: 'Tabs',
    links: [
      { href: PATH, label: 'Preview', current: true },
      { href: PATH, label: 'Text', current: false },
    ],
  },
  {
    kind: 'chips',
    title: 'Chips',
    chips: [
      { href: PATH, label: 'All', current: true, count: '131,882' },
      { href: PATH, label: 'bounced', count: '7,051' },
      { href: PATH, label: 'Tag: invoice', off: true },
    ],
  },
  { kind: 'form', title: 'Fields', action: PATH, method: 'post', fields: FIELDS, submit: 'Send' },
  {
    kind: 'form',
    title: 'Fields in pairs',
    action: PATH,
    method: 'post',
    pairs: true,
    fields: [
      {
        name: 'column',
        label: 'City',
        type: 'select',
        hint: 'Graz · Linz',
        options: [{ value: 'property', label: 'Property' }],
      },
      { name: 'name', label: 'Property name for City', type: 'text', value: 'City' },
    ],
    submit: 'Continue',
  },
  {
    kind: 'alerts',
    title: 'Alerts',
    calm: '',
    alerts: [
      {
        tone: 'bad',
        title: 'Nothing goes out',
        text: '421 4.7.0 Too many connections',
        link: { href: PATH, label: 'Show' },
      },
      { tone: 'warn', title: '4 domains are not verified yet', folded: [{ tone: 'warn', title: 'a.test' }] },
      { tone: 'good', title: 'All checks passed' },
    ],
  },
]

const words = (now: Date): Section[] => [
  {
    kind: 'steps',
    title: 'Steps',
    steps: [
      { title: 'Add a domain', done: true },
      { title: 'Verify it', text: 'Emails are sent from verified domains alone.', done: false },
    ],
  },
  {
    kind: 'timeline',
    title: 'Timeline',
    moments: [
      {
        tone: 'bad',
        title: 'Bounced',
        who: LONG,
        at: time(now.toISOString(), now),
        detail: '550 5.1.1 no such user',
      },
      { tone: 'plain', title: 'Accepted by the API', at: time(now.toISOString(), now) },
    ],
    empty: '',
  },
  { kind: 'facts', title: 'Facts', facts: [{ label: 'Address', cell: text(LONG, { copy: true }) }] },
  { kind: 'code', title: 'Code', code: 'curl https://example.com/v1/emails' },
  {
    kind: 'difference',
    title: 'Difference',
    lines: [
      { sign: '-', text: 'Hi' },
      { sign: '+', text: 'Dear' },
    ],
  },
  { kind: 'text', title: 'Icons', paragraphs: [Object.keys(ICONS).join(', ')] },
]

const page: PersonPage = {
  method: 'GET',
  path: PATH,
  access: 'person',
  async handle({ now }, { specimens }) {
    if (!specimens) throw new Refusal('not_found', 'there is no such page')
    return show({
      title: 'Specimens',
      lead: 'Every piece that pages are made of.',
      state: status('verified'),
      actions: { kind: 'actions', links: [{ href: PATH, label: 'Quiet' }] },
      sections: [
        {
          kind: 'tiles',
          title: 'Figures',
          tiles: [
            { label: 'Sent', value: '29,609', detail: '−3 % on the 7 days before' },
            { label: 'Bounced', value: '5.8 %', detail: 'keep it below 5.0 %', tone: 'bad' },
            { label: 'Used', value: '40,000', detail: 'of 50,000', filled: 80, tone: 'warn' },
          ],
        },
        ...controls(),
        table(now),
        ...chart(now),
        ...words(now),
      ],
    })
  },
}

/** Changes nothing: shows the fault of a field, or says that all was well. */
const post: PersonPage = {
  method: 'POST',
  path: PATH,
  access: 'person',
  async handle({ form }, { specimens }) {
    if (!specimens) throw new Refusal('not_found', 'there is no such page')
    if (form.get('address') === 'no') throw new Refusal('bad_request', 'address must be an email address')
    return redirect(PATH, 'Nothing was changed: this page shows pieces alone.')
  },
}

export const specimenPages = [page, post]
