/** An email by the API, for tests that are about what becomes of it. */
import { anEmail, type Service } from './service.ts'

/** @returns its id. @throws what the API says when it does not accept it. */
export async function sendEmail(
  { call }: Pick<Service, 'call'>,
  { key }: { key: string },
  changes: object = {},
): Promise<string> {
  const { status, body } = await call('POST', '/v1/emails', { key, body: anEmail({ ...changes }) })
  if (status !== 201) throw new Error(JSON.stringify(body))
  return body.id
}
