/** Sends an email through the API, for tests about its later results. */
import { anEmail, type Service } from './service.ts'

/** Sends an email. @returns its id. @throws Error with the API's error if it isn't accepted. */
export async function sendEmail(
  { call }: Pick<Service, 'call'>,
  { key }: { key: string },
  changes: object = {},
): Promise<string> {
  const { status, body } = await call('POST', '/v1/emails', { key, body: anEmail({ ...changes }) })
  if (status !== 201) throw new Error(JSON.stringify(body))
  return body.id
}
