/** Verbs of `template`: a team's email templates. */

import { removeTemplate, showTemplate } from '../content/templates/remove.ts'
import { saveTemplate, updateTemplate } from '../content/templates/save.ts'
import { templatesOfTeam } from '../content/templates/templates.sql.ts'
import { RequestError } from '../errors.ts'
import { fileText } from './input.ts'
import { answer, type Verbs } from './noun.ts'
import { TEXTS } from './texts.ts'

type PartOptions = { html: string; text?: string; listUnsubscribe?: boolean }

const GRAMMAR =
  '\nA template is text and {{name}} slots; a name is letters, digits, _, - and . taken literally.\nEverything else in double braces is refused, comments too; a backslash is text.'

const LIST_UNSUBSCRIBE = 'its emails carry List-Unsubscribe headers, with the link of {{unsubscribe_url}}'

async function readParts(options: PartOptions) {
  if (options.html === '-' && options.text === '-') {
    throw new RequestError('bad_request', TEXTS.oneStandardInput)
  }
  const html = await fileText(options.html)
  return {
    html,
    text: options.text === undefined ? undefined : await fileText(options.text),
    ...(options.listUnsubscribe === undefined ? {} : { list_unsubscribe: options.listUnsubscribe }),
  }
}

export const verbs: Verbs = ({ verb, list, look, change, admin }) => {
  verb('create TEAM', 'save an email template; answers with its slots')
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

  verb(
    'update TEAM ID',
    'save a new version of a template, if anything differs; emails accepted before keep theirs',
  )
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

  list('the email templates of a team', templatesOfTeam)

  verb('show TEAM ID', 'a template with its parts, its slots and its versions').action(look(showTemplate))

  verb('delete TEAM ID', 'delete a template; emails made from it stay, and still go out').action(
    change(async (by, team: string, id: string) => {
      const { name } = await removeTemplate(by, team, id)
      return { id, name, deleted: true }
    }),
  )
}
