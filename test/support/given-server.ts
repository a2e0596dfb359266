/** Checks the requirements of tests on the server of DATABASE_URL, in addition to the service's. */
import { Client } from 'pg'

/** The oldest version that the service supports. */
const MAJOR = 15
/** The number of connections that concurrent tests need, with a margin. */
const CONNECTIONS = 300

/** Returns the missing requirements in one line. Null if the server meets all of them. */
export async function givenServerFault(url: string): Promise<string | null> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    const { rows } = await client.query<{
      version: number
      connections: number
      role: string
      all: boolean
    }>(`
      select current_setting('server_version_num')::int / 10000 as version,
        current_setting('max_connections')::int as connections, current_user as role,
        (select rolsuper from pg_roles where rolname = current_user) as all`)
    const [{ version, connections, role, all }] = rows as [(typeof rows)[number]]
    const lacks = [
      version < MAJOR && `PostgreSQL ${MAJOR} or newer (it is ${version})`,
      !all && `a superuser (${role} is none)`,
      connections < CONNECTIONS && `max_connections of at least ${CONNECTIONS} (it is ${connections})`,
    ].filter((lack) => lack !== false)
    return lacks.length === 0 ? null : `the server of DATABASE_URL lacks ${lacks.join(', ')}`
  } finally {
    await client.end()
  }
}
