/** Verbs of `template`: a team's email templates. */

import { removeTemplate, showTemplate } from '../content/templates/remove.ts'
import { saveTemplate, updateTemplate } from '../content/templates/save.ts'
import { templatesOfTeam } from '../content/templates/templates.sql.ts'
import { RequestError } from '../errors.ts'
import { fileText } from './input.ts'
import { answer, type Verbs } from './noun.ts'
import { TEXTS } from './texts.ts'

type PartOptions = { html: string; text?: string; listUnsubscribe?: boolean }

const GRAMMAR = `
A template contains text and {{name}} variables. A name can contain letters, digits, _, - and .
Anything else in double braces is rejected, including comments. A backslash is plain text.`

const LIST_UNSUBSCRIBE = 'add List-Unsubscribe headers to its emails, with the link in {{unsubscribe_url}}'

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
  verb('create TEAM', 'Create an email template. Prints its variables')
    .requiredOption('--name <name>', 'the name to display')
    .requiredOption('--html <file>', 'the HTML part (- reads standard input)')
    .option('--text <file>', 'the plain-text part (- reads standard input)')
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
    'Save a new version of a template, if anything differs. Emails already accepted keep their version',
  )
    .requiredOption('--html <file>', 'the HTML part (- reads standard input)')
    .option(
      '--text <file>',
      'the plain-text part (- reads standard input). Unchanged if left out, removed if empty',
    )
    .option('--list-unsubscribe', LIST_UNSUBSCRIBE)
    .option('--no-list-unsubscribe', 'remove these headers (default: unchanged)')
    .addHelpText('after', GRAMMAR)
    .action(
      answer(async (team: string, id: string, files: PartOptions) => {
        const parts = await readParts(files)
        return admin.transaction((by) => updateTemplate(by, team, id, parts))
      }),
    )

  list('List the email templates of a team', templatesOfTeam)

  verb('show TEAM ID', 'Show a template with its parts, variables and versions').action(look(showTemplate))

  verb('delete TEAM ID', 'Delete a template. Emails created from it are kept and still sent').action(
    change(async (by, team: string, id: string) => {
      const { name } = await removeTemplate(by, team, id)
      return { id, name, deleted: true }
    }),
  )
}
