/** Verbs of `whatsapp-template`: a team's WhatsApp templates, as the provider's own objects. */
import {
  createWhatsappTemplate,
  setWhatsappTemplateStatus,
  templateView,
} from '../messages/whatsapp/save-template.ts'
import { TEMPLATE_STATES } from '../messages/whatsapp/status.ts'
import { awaitSync, requestSync } from '../messages/whatsapp/sync-templates.ts'
import { whatsappTemplatesOfTeam } from '../messages/whatsapp/templates.sql.ts'
import { fileJson } from './input.ts'
import { answer, type Verbs } from './noun.ts'

const FORM = `
FILE contains the provider's template object: name, language, status, category, components. Its variables are header:1,
body:1…n and url:1…n. Templates that can't be sent (media headers, flows, named parameters, …) are stored and marked.`

export const verbs: Verbs = ({ verb, list, change, admin }) => {
  verb('create TEAM', 'Store a template that the provider has. Prints its variables')
    .requiredOption('--file <file>', 'the template as JSON (- reads standard input)')
    .addHelpText('after', FORM)
    .action(
      answer(async (team: string, { file }: { file: string }) => {
        const definition = await fileJson(file)
        return admin.transaction((by) => createWhatsappTemplate(by, team, definition))
      }),
    )

  verb('status TEAM ID STATUS', 'Set the status of a template. Only approved templates are sent', {
    STATUS: [TEMPLATE_STATES.join(', ')],
  }).action(change(setWhatsappTemplateStatus))

  list('List the WhatsApp templates of a team', async (database, team) =>
    (await whatsappTemplatesOfTeam(database, team)).map(templateView),
  )

  verb('sync TEAM', 'Update the templates of a team from the provider’s list. A worker runs the sync')
    .addHelpText(
      'after',
      `
Requires a running worker with WHATSAPP_ACCESS_TOKEN and WHATSAPP_BUSINESS_ACCOUNT_ID set.`,
    )
    .action(
      answer(async (team: string) => {
        const queue = await admin.queue()
        const sync_id = await admin.transaction((by) => requestSync({ ...by, queue }, team))
        return awaitSync(await admin.database(), team, sync_id)
      }),
    )
}
