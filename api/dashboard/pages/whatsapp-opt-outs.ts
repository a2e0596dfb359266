/** Lists recipients who opted out of a team's WhatsApp marketing. Opts numbers out or in manually. */
import { hasErasedOptOut, optOutsOfTeam } from '../../../db/messages/whatsapp/opt-outs.sql.ts'
import { optInManually, optOutManually } from '../../../db/messages/whatsapp/opt-outs.ts'
import { text, time } from '../components/cell.ts'
import type { Section } from '../components/section.ts'
import { action, buildForm, buildTable, compact, field, get } from '../server/builders.ts'
import { redirect, show, teamPath } from '../server/page.ts'

const PATH = '/teams/:team/whatsapp-opt-outs'

const numberForm = (action: string, submit: string, title: string): Section =>
  buildForm(action, submit, {
    title,
    folded: true,
    fields: [field('to', 'Number', { required: true, placeholder: '+15551234567' })],
  })

const list = get('viewer', PATH, async ({ team, now }, { database }) => {
  const here = teamPath(team, 'whatsapp-opt-outs')
  const edits = team.role !== 'viewer'
  const numbers = await optOutsOfTeam(database, team.id)
  const hasErased = await hasErasedOptOut(database, team.id)
  return show({
    title: 'WhatsApp opt-outs',
    lead: 'Marketing messages to these numbers fail. Other messages are still sent.',
    back: { href: teamPath(team, 'whatsapp'), label: 'WhatsApp' },
    sections: compact([
      buildTable(numbers, ({ to, at, by }) => ({ Number: text(to), By: text(by), Since: time(at, now) }), {
        empty: hasErased
          ? 'All opted-out numbers have been erased, so none is listed.'
          : 'No one has opted out. Numbers that reply with a stop word appear here.',
      }),
      edits && numberForm(here, 'Opt the number out', 'Opt a number out'),
      edits &&
        (numbers.length > 0 || hasErased) &&
        numberForm(`${here}/opt-in`, 'Opt the number in', 'End an opt-out'),
    ]),
  })
})

const optOut = action('editor', PATH, async (by, { team, form }) => {
  const { to } = await optOutManually(by, team.id, form.get('to') ?? '')
  return redirect(teamPath(team, 'whatsapp-opt-outs'), `${to} was opted out of marketing.`)
})

const optIn = action('editor', `${PATH}/opt-in`, async (by, { team, form }) => {
  const { to } = await optInManually(by, team.id, form.get('to') ?? '')
  return redirect(teamPath(team, 'whatsapp-opt-outs'), `${to} gets marketing messages again.`)
})

export const whatsappOptOutPages = [list, optOut, optIn]
