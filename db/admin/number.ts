/** Verbs of `number`: the WhatsApp numbers of teams, except the default one. */
import type { Command } from 'commander'
import {
  addNumber,
  checkNumber,
  type NumberTools,
  pauseNumber,
  removeNumber,
  resumeNumber,
  setNumber,
  showNumber,
} from '../messages/whatsapp/manage-numbers.ts'
import { allNumbers } from '../messages/whatsapp/numbers.sql.ts'
import { fileText, positive } from './input.ts'
import { answer, type Noun, type Verbs } from './noun.ts'

const NAME = { NAME: ['its name: 1 to 64 characters of a-z, 0-9 and -'] as const }

type Further = { appSecretFile?: string; messagesPerSecond?: number }
type Added = Further & { phoneNumberId: string; accountId: string; subscribe?: boolean }
type Set = Further & { token?: boolean }

const withFurther = (command: Command, usualRate: string): Command =>
  command
    .option(
      '--app-secret-file <file>',
      'a file with the app secret, if this number’s events don’t come from the Meta app of WHATSAPP_APP_SECRET',
    )
    .option(
      '--messages-per-second <n>',
      `its limit in messages per second. Set more than 80 only if Meta has raised it (default: ${usualRate})`,
      positive,
    )

/** The access token, which is read from standard input. */
const readToken = async (): Promise<string> => (await fileText('-')).trim()

const readFurther = async ({ appSecretFile: file, messagesPerSecond: messages_per_second }: Further) => ({
  app_secret: file === undefined ? undefined : (await fileText(file)).trim(),
  messages_per_second,
})

const openTools = async ({ admin }: Noun): Promise<NumberTools> => ({
  run: admin.transaction,
  secrets: await admin.secrets(),
  url: admin.graphApi(),
  site: admin.publicUrl ?? null,
})

export const verbs: Verbs = (noun) => {
  const { verb, look, change, admin } = noun
  withFurther(verb('add NAME', 'Add a number. Its access token is read from standard input', NAME), '80')
    .requiredOption('--phone-number-id <id>', 'its phone number ID at Meta')
    .requiredOption('--account-id <id>', 'the ID of its WhatsApp Business Account')
    .option('--subscribe', 'subscribe the token’s app to the account, if it isn’t subscribed yet')
    .addHelpText('after', '\nChecks the token with Meta first. Nothing is stored if Meta rejects it.')
    .action(
      answer(async (name: string, { phoneNumberId, accountId, subscribe = false, ...further }: Added) => {
        const ids = { name, phone_number_id: phoneNumberId, account_id: accountId }
        const given = { ...ids, token: await readToken(), ...(await readFurther(further)) }
        return addNumber(await openTools(noun), given, { subscribe })
      }),
    )

  verb('list', 'List all numbers except the default one').action(look(allNumbers))

  verb('show NAME', 'Show a number, its hook and the verify token of the hook', NAME).action(
    look(async (database, name: string) => showNumber(database, await admin.secrets(), name)),
  )

  withFurther(verb('set NAME', 'Change a number', NAME), 'unchanged')
    .option('--token', 'read a new access token from standard input, and check it')
    .action(
      answer(async (name: string, { token = false, ...further }: Set) => {
        const change = { ...(token ? { token: await readToken() } : {}), ...(await readFurther(further)) }
        return setNumber(await openTools(noun), name, change)
      }),
    )

  let accepted = true
  verb('check NAME', 'Check a number with Meta, and show what is missing', NAME)
    .option('--subscribe', 'subscribe the token’s app to the account, if it isn’t subscribed yet')
    .addHelpText('after', '\nExits with code 1 if Meta rejects the token.')
    .action(
      answer(
        async (name: string, { subscribe = false }: { subscribe?: boolean }) => {
          const { accepted: is, ...shown } = await checkNumber(await openTools(noun), name, { subscribe })
          accepted = is
          return shown
        },
        () => accepted,
      ),
    )

  verb('pause NAME', 'Pause a number. Its messages wait until it is resumed', NAME).action(
    change(pauseNumber),
  )
  verb('resume NAME', 'End all pauses of a number, including those by Meta', NAME).action(
    change(resumeNumber),
  )
  verb('remove NAME', 'Remove a number that no team and no waiting message uses', NAME).action(
    change(removeNumber),
  )
}
