/** The errors about WhatsApp numbers, each with its code and message. */
import { RequestError } from '../../errors.ts'

const error =
  <A extends unknown[]>(code: RequestError['code'], message: (...args: A) => string) =>
  (...args: A): RequestError =>
    new RequestError(code, message(...args))

export const NUMBER_ERRORS = {
  missing: error(
    'not_found',
    (name: string) => `WhatsApp number ${name} not found. Run \`number list\` to see all numbers.`,
  ),
  name_taken: error('bad_request', (name: string) => `The number ${name} already exists.`),
  id_taken: error('bad_request', (name: string) => `The number ${name} already has this phone number ID.`),
  rejected: error(
    'bad_request',
    (words: string) => `Meta rejects this token for the number and its account: ${words}`,
  ),
  no_change: error(
    'bad_request',
    () => 'Specify what to change: a token, an app secret or the messages per second.',
  ),
  in_use: error(
    'invalid_state',
    ({ name, teams, waiting }: { name: string; teams: number; waiting: number }) =>
      `The number ${name} has teams (${teams}) or waiting messages (${waiting}). Give the teams another number, then remove this one once no messages are waiting.`,
  ),
  old_web: error(
    'invalid_state',
    () => 'A web process of an older version is running. It only knows the default number. Replace it first.',
  ),
  unreachable: error(
    'unavailable',
    (host: string, words: string) => `Meta can't be reached at ${host}: ${words}`,
  ),
  no_response: error('unavailable', (words: string) => `Meta returned an error: ${words}`),
}
