/**
 * A customer's program on a client generated from the description: it sends an email, and reads an error and
 * a page. test/api/docs.test.ts makes `api.d.ts`, type-checks this file with it, and runs it. tsconfig.json
 * excludes this folder.
 */
import createClient from 'openapi-fetch'
import type { paths } from './api.d.ts'

const { HELIOGRAPH_URL = '', HELIOGRAPH_KEY = '' } = process.env
const client = createClient<paths>({
  baseUrl: HELIOGRAPH_URL,
  headers: { Authorization: `Bearer ${HELIOGRAPH_KEY}` },
})

const email = { from: 'hello@example.com', to: ['ana@example.org'], subject: 'Hello', html: '<p>Hello</p>' }
const copies = { cc: ['ben@example.org'], bcc: ['archive@example.com'] }
const { data, response } = await client.POST('/v1/emails', { body: { ...email, ...copies } })
const { error } = await client.POST('/v1/emails', { body: { ...email, from: 'nobody' } })
const page = await client.GET('/v1/contacts', { params: { query: { limit: 1, status: 'subscribed' } } })

// The client's types reject values and shapes that the description excludes.
type Query = NonNullable<paths['/v1/contacts']['get']['parameters']['query']>
// @ts-expect-error: no status of a contact
const status: Query['status'] = 'asleep'
type Send = paths['/v1/emails']['post']['requestBody']['content']['application/json']
// @ts-expect-error: a send without its sender
const incomplete: Send = { to: email.to }
// @ts-expect-error: copies go to a list
const single: Send = { ...email, cc: 'ben@example.org' }

export type Ruled = [typeof status, typeof incomplete, typeof single]

const code: string | undefined = error?.error.code
const contacts: number | undefined = page.data?.data.length
const { to_emails, cc_emails, bcc_emails } = data ?? {}
const seen = { sent: response.status, status: data?.status, to_emails, cc_emails, bcc_emails, code, contacts }
process.stdout.write(JSON.stringify(seen))
