/** Verbs of `template`: a team's email templates. */

import { teamOrRefusal } from '../accounts/teams/view.ts'
import { removeTemplate, showTemplate } from '../content/templates/remove.ts'
import { saveTemplate, updateTemplate } from '../content/templates/save.ts'
import { templatesOfTeam } from '../content/templates/templates.sql.ts'
import { Refusal } from '../errors.ts'
import { fileText, uuid } from './input.ts'
import { answer, type Verbs } from './noun.ts'

type PartOptions = { html: string; text?: string; listUnsubscribe?: boolean }

const GRAMMAR =
  '\nA template is text and {{name}} slots; a name is letters, digits, _, - and . taken literally.\nEverything else in double braces is refused, comments too; a backslash is text.'

const LIST_UNSUBSCRIBE = 'its emails carry List-Unsubscribe headers, with the link of {{unsubscribe_url}}'

async function readParts(options: PartOptions) {
  if (options.html === '-' && options.text === '-') {
    throw new Refusal('bad_request', 'only one of --html and --text can read standard input')
  }
  const html = await fileText(options.html)
  return {
    html,
    text: options.text === undefined ? undefined : await fileText(options.text),
    ...(options.listUnsubscribe === undefined ? {} : { list_unsubscribe: options.listUnsubscribe }),
  }
}

const saving: Verbs = (template, admin) => {
  template
    .command('create')
    .description('save an email template; answers with its slots')
    .argument('<team>', 'id of the team', uuid)
    .requiredOption('--name <name>', 'what people call it')
    .requiredOption('--html <file>', 'its html (- reads standard input)')
    .option('--text <file>', 'its plain-text part (- reads standard input)')
    .option('--list-unsubscribe', LIST_UNSUBSCRIBE)
    .addHelpText('after', GRAMMAR)
    .action(
      answer(async (team: string, { name, ...files }: PartOptions & { name: string }) => {
        const { text = '', ...parts } = await readParts(files)
        return admin.transaction((by) => saveTemplate(by, team, { name, text, ...parts }))
      }),
    )

  template
    .command('update')
    .description('save a new version of a template, if anything differs; emails accepted before keep theirs')
    .argument('<team>', 'id of the team', uuid)
    .argument('<id>', 'id of the template', uuid)
    .requiredOption('--html <file>', 'its html (- reads standard input)')
    .option(
      '--text <file>',
      'its plain-text part (- reads standard input); left out, the text stays; empty, it goes',
    )
    .option('--list-unsubscribe', LIST_UNSUBSCRIBE)
    .option('--no-list-unsubscribe', 'no such headers any more; left out, it stays as it was')
    .addHelpText('after', GRAMMAR)
    .action(
      answer(async (team: string, id: string, files: PartOptions) => {
        const parts = await readParts(files)
        return admin.transaction((by) => updateTemplate(by, team, id, parts))
      }),
    )
}

const keeping: Verbs = (template, admin) => {
  template
    .command('list')
    .description('the email templates of a team')
    .argument('<team>', 'id of the team', uuid)
    .action(
      answer(async (team: string) => {
        const database = await admin.database()
        await teamOrRefusal(database, team)
        return templatesOfTeam(database, team)
      }),
    )

  template
    .command('show')
    .description('a template with its parts, its slots and its versions')
    .argument('<team>', 'id of the team', uuid)
    .argument('<id>', 'id of the template', uuid)
    .action(answer(async (team: string, id: string) => showTemplate(await admin.database(), team, id)))

  template
    .command('delete')
    .description('delete a template; emails made from it stay, and still go out')
    .argument('<team>', 'id of the team', uuid)
    .argument('<id>', 'id of the template', uuid)
    .action(
      answer(async (team: string, id: string) => {
        const { name } = await admin.transaction((by) => removeTemplate(by, team, id))
        return { id, name, deleted: true }
      }),
    )
}

export const verbs: Verbs = (template, admin) => {
  saving(template, admin)
  keeping(template, admin)
}
