/** Verbs of `whatsapp-template`: a team's WhatsApp templates, as the provider's own objects. */
import { teamOrRefusal } from '../accounts/teams/view.ts'
import {
  createWhatsappTemplate,
  setWhatsappTemplateStatus,
  templateView,
} from '../messages/whatsapp/save-template.ts'
import { TEMPLATE_STATES } from '../messages/whatsapp/status.ts'
import { awaitSync, requestSync } from '../messages/whatsapp/sync-templates.ts'
import { templatesOfTeam } from '../messages/whatsapp/templates.sql.ts'
import { fileJson, uuid } from './input.ts'
import { answer, type Verbs } from './noun.ts'

const FORM = `
FILE holds the provider's template object: name, language, status, category, components. Its slots are header:1,
body:1…n and url:1…n; a shape that cannot be sent (media headers, flows, named parameters, …) is kept, and marked.`

const keeping: Verbs = (template, admin) => {
  template
    .command('create')
    .description('keep a template that the provider knows; answers with its slots')
    .argument('<team>', 'id of the team', uuid)
    .requiredOption('--file <file>', 'the template as JSON (- reads standard input)')
    .addHelpText('after', FORM)
    .action(
      answer(async (team: string, { file }: { file: string }) => {
        const definition = await fileJson(file)
        return admin.transaction((by) => createWhatsappTemplate(by, team, definition))
      }),
    )

  template
    .command('status')
    .description('set the state of a template; only an approved one is sent')
    .argument('<team>', 'id of the team', uuid)
    .argument('<id>', 'id of the template', uuid)
    .argument('<status>', TEMPLATE_STATES.join(', '))
    .action(
      answer(
        async (team: string, id: string, status: string) =>
          await admin.transaction((by) => setWhatsappTemplateStatus(by, team, id, status)),
      ),
    )
}

const looking: Verbs = (template, admin) => {
  template
    .command('list')
    .description('the WhatsApp templates of a team')
    .argument('<team>', 'id of the team', uuid)
    .action(
      answer(async (team: string) => {
        const database = await admin.database()
        await teamOrRefusal(database, team)
        return (await templatesOfTeam(database, team)).map(templateView)
      }),
    )

  template
    .command('sync')
    .description('bring the templates of a team up to what the provider lists; a worker does it')
    .argument('<team>', 'id of the team', uuid)
    .addHelpText(
      'after',
      '\nTakes a running worker with WHATSAPP_ACCESS_TOKEN and WHATSAPP_BUSINESS_ACCOUNT_ID set.',
    )
    .action(
      answer(async (team: string) => {
        const queue = await admin.queue()
        const sync_id = await admin.transaction((by) => requestSync({ ...by, queue }, team))
        return awaitSync(await admin.database(), team, sync_id)
      }),
    )
}

export const verbs: Verbs = (template, admin) => {
  keeping(template, admin)
  looking(template, admin)
}
