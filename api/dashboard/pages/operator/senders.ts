/** What we send through: relays, accounts and numbers, how they stand, and the end of a pause. */
import { DELIVERIES } from '../../../../db/channels/channels.sql.ts'
import { listSenders, resumeSender, type ShownSender } from '../../../../db/delivery/senders/show.ts'
import { type Cell, status, text, time } from '../../drawn/cell.ts'
import type { Section } from '../../drawn/section.ts'
import { act } from '../../served/act.ts'
import { type PersonPage, redirect, show } from '../../served/page.ts'

const PATH = '/operator/senders'

const standing = ({ state, rate }: ShownSender): Cell =>
  status(state, state === 'slowed' ? { detail: `${rate.toFixed(1)} per second` } : {})

const TITLES: Readonly<Record<string, string>> = {
  slowed: 'It was slowed down',
  paused: 'It was paused',
  recovered: 'It takes mail again',
  resumed: 'An operator resumed it',
}

const timeline = ({ key, events }: ShownSender, now: Date): Section => ({
  kind: 'timeline',
  title: key,
  moments: events.map(({ time: at, kind, detail }) => ({
    tone: kind === 'paused' ? 'bad' : kind === 'slowed' ? 'warn' : 'good',
    title: TITLES[kind] ?? kind,
    at: time(at, now),
    ...(detail === '' ? {} : { detail }),
  })),
  empty: 'Nothing has happened to it lately.',
})

const senders: PersonPage = {
  method: 'GET',
  path: PATH,
  access: 'operator',
  async handle({ now }, { database }) {
    const rows = await listSenders(database)
    return show({
      title: 'Senders',
      lead: 'Relays, accounts and numbers that were ever paced, slowed or paused. While one is paused, what goes through it waits, and nothing is lost.',
      sections: [
        {
          kind: 'table',
          id: 'senders',
          live: true,
          columns: ['Sender', 'State', 'Until', 'In the provider’s words', 'Resume'].map((label) => ({
            label,
          })),
          rows: rows.map((sender) => ({
            cells: [
              text(sender.key),
              standing(sender),
              sender.paused_until === null ? text(null) : time(sender.paused_until, now),
              text(sender.reason),
              sender.paused_until === null
                ? text('')
                : {
                    text: '',
                    button: {
                      action: `${PATH}/resume?${new URLSearchParams({ key: sender.key })}`,
                      label: 'Resume now',
                    },
                  },
            ],
          })),
          empty: 'No sender was ever paused or slowed.',
        },
        ...rows.map((sender) => timeline(sender, now)),
      ],
    })
  },
}

const resume: PersonPage = {
  method: 'POST',
  path: `${PATH}/resume`,
  access: 'operator',
  async handle(request, deps) {
    const key = request.query.get('key') ?? ''
    const deed = { team_id: null, action: 'sender.resume', subject: key }
    await act(request, deps, deed, ({ tx }) => resumeSender(tx, key))
    for (const { job } of DELIVERIES) deps.wake(job)
    return redirect(PATH, `${key} is resumed.`)
  },
}

export const senderPages = [senders, resume]
