/** Verbs of `whatsapp-template`: a team's WhatsApp templates, as Meta's own objects. */
import {
  createWhatsappTemplate,
  setWhatsappTemplateStatus,
  showWhatsappTemplate,
  templateView,
} from '../messages/whatsapp/save-template.ts'
import { TEMPLATE_STATES } from '../messages/whatsapp/status.ts'
import {
  awaitAdded,
  awaitAvailable,
  awaitSync,
  requestAdd,
  requestAvailable,
  requestSync,
} from '../messages/whatsapp/sync-templates.ts'
import { whatsappTemplatesOfTeam } from '../messages/whatsapp/templates.sql.ts'
import { fileJson } from './input.ts'
import { answer, type Verbs } from './noun.ts'

const FORM = `
FILE contains Meta's template object: name, language, status, category, components. Its variables are:
  header:1            a text header's variable, or the https URL of an image, a video or a document
  header:2            the file name of a document
  header:1 … 4        a location's latitude, longitude, name and address
  body:1 … n          the body's variables, in their order
  url:1, url:2        the variable of the first and second dynamic URL button
  code:1              the code that a copy-code button copies
A template that can't be sent (flow, catalog, carousel, limited-time offer and the like) is stored and marked as unsupported.`

const LISTING = `
A worker requests the list from Meta. For the default number, that worker needs WHATSAPP_ACCESS_TOKEN and
WHATSAPP_BUSINESS_ACCOUNT_ID.`

export const verbs: Verbs = ({ verb, list, look, change, admin }) => {
  verb('create TEAM', 'Store a template that exists at Meta, from a JSON file. Prints its variables')
    .requiredOption('--file <file>', 'the template as JSON (- reads standard input)')
    .addHelpText('after', FORM)
    .action(
      answer(async (team: string, { file }: { file: string }) => {
        const definition = await fileJson(file)
        return admin.transaction((by) => createWhatsappTemplate(by, team, definition))
      }),
    )

  verb('status TEAM ID STATUS', 'Set the status of a template. Only approved templates can be sent', {
    STATUS: [TEMPLATE_STATES.join(', ')],
  }).action(change(setWhatsappTemplateStatus))

  list('List the WhatsApp templates of a team', async (database, team) =>
    (await whatsappTemplatesOfTeam(database, team)).map(templateView),
  )

  verb('show TEAM ID', 'Show a WhatsApp template and the names of its variables').action(
    look(showWhatsappTemplate),
  )

  verb('sync TEAM', 'Update the templates of a team from Meta’s list. A worker runs the sync')
    .addHelpText('after', LISTING)
    .action(
      answer(async (team: string) => {
        const queue = await admin.queue()
        const sync_id = await admin.transaction((by) => requestSync({ ...by, queue }, team))
        return awaitSync(await admin.database(), team, sync_id)
      }),
    )

  verb('available TEAM', 'List the templates of the team’s WhatsApp account')
    .addHelpText('after', LISTING)
    .action(
      answer(async (team: string) => {
        const queue = await admin.queue()
        const sync_id = await admin.transaction((by) => requestAvailable({ ...by, queue }, team))
        return awaitAvailable(await admin.database(), team, sync_id)
      }),
    )

  verb('add TEAM NAME', 'Add a template from the team’s WhatsApp account. Prints the same as `create`', {
    NAME: ['its name'],
  })
    .requiredOption('--language <language>', 'its language, such as en_US')
    .addHelpText('after', LISTING)
    .action(
      answer(async (team: string, name: string, { language }: { language: string }) => {
        const queue = await admin.queue()
        const wanted = { name, language }
        const sync_id = await admin.transaction((by) => requestAdd({ ...by, queue }, team, wanted))
        return awaitAdded(await admin.database(), team, { sync_id, ...wanted })
      }),
    )
}
