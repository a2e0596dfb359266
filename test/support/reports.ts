/** What tests about reports look at: stored reports, queued jobs, rows and contacts, by plain SQL of their own. */
import { Client } from 'pg'

async function rowsOf<T>(url: string, text: string, values: unknown[] = []): Promise<T[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query(text, values)).rows as T[]
  } finally {
    await client.end()
  }
}

export type StoredReport = {
  id: string
  provider: string
  event_key: string
  body: Buffer
  state: string
  reason: string | null
}

/** Every stored report, oldest first. */
export const storedReports = async (url: string): Promise<StoredReport[]> =>
  await rowsOf(url, 'select id, provider, event_key, body, state, reason from reports order by id')

/** The payloads of a queue's jobs that are waiting or running. */
export const jobsOf = async (url: string, queue: string): Promise<unknown[]> =>
  (
    await rowsOf<{ data: unknown }>(
      url,
      "select data from pgboss.job where name = $1 and state <= 'active' order by id",
      [queue],
    )
  ).map(({ data }) => data)
