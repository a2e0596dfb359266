/** The errors about WhatsApp numbers, in one table: the code and the sentences of each. */
import { RequestError } from '../../errors.ts'

const error =
  <A extends unknown[]>(code: RequestError['code'], message: (...args: A) => string) =>
  (...args: A): RequestError =>
    new RequestError(code, message(...args))

export const NUMBER_ERRORS = {
  missing: error(
    'not_found',
    (name: string) => `There is no WhatsApp number ${name}. \`number list\` shows those there are.`,
  ),
  name_taken: error('bad_request', (name: string) => `A number ${name} exists already.`),
  id_taken: error('bad_request', (name: string) => `The number ${name} has this phone number id already.`),
  rejected: error(
    'bad_request',
    (words: string) => `Meta doesn't accept this token for the number and its account: ${words}`,
  ),
  no_change: error(
    'bad_request',
    () => 'Say what to change: a token, an app secret or the messages per second.',
  ),
  in_use: error(
    'invalid_state',
    ({ name, teams, waiting }: { name: string; teams: number; waiting: number }) =>
      `The number ${name} has ${teams} teams and ${waiting} waiting messages. Give the teams another number, and remove it once nothing waits.`,
  ),
  old_web: error(
    'invalid_state',
    () =>
      'A web process of an older version is running, which knows the default number only. Replace it first.',
  ),
  unreachable: error(
    'unavailable',
    (host: string, words: string) => `Meta can't be reached at ${host}: ${words}`,
  ),
  no_response: error('unavailable', (words: string) => `Meta can't answer now: ${words}`),
}
