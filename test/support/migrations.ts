/** The current migrations with one more, for tests of the release step. */
import { cp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { Client } from 'pg'
import { migrationFiles } from '../../db/schema.sql.ts'
import type { Test } from './tap.ts'

const MIGRATIONS = join(import.meta.dirname, '../../db/migrations')

/** Opens a connection for the test. */
export async function connected(t: Test, url: string): Promise<Client> {
  const client = new Client({ connectionString: url })
  await client.connect()
  t.teardown(() => client.end())
  return client
}

/** The current migrations and one more with this text. */
export async function withOneMore(t: Test, text: string): Promise<{ directory: URL; file: string }> {
  const folder = t.testdir()
  await cp(MIGRATIONS, folder, { recursive: true })
  const number = String((await migrationFiles()).length + 1).padStart(4, '0')
  await writeFile(join(folder, `${number}-one-more.sql`), text)
  return { directory: pathToFileURL(`${folder}/`), file: `${number}-one-more.sql` }
}

/** Copies ten rows in separate transactions, and continues after the last one when called again. */
export const LONG_COPY = `-- outside a transaction: copies in batches, and says how far it has come
create table if not exists copied (id integer primary key);

create or replace procedure copy_all() language plpgsql as $$
begin
  if exists (
    select from pg_stat_activity
    where datname = current_database() and query like 'call copy_all%' and pid <> pg_backend_pid())
  then
    raise exception 'two copies at once';
  end if;
  for row_id in (select coalesce(max(id), 0) + 1 from copied) .. 10 loop
    insert into copied (id) values (row_id);
    -- In between it is silent: a server that writes nothing does not notice that nobody listens.
    if row_id in (2, 10) then raise info 'copied % of 10', row_id; end if;
    commit;
    perform pg_sleep(0.2);
  end loop;
end $$;

call copy_all();

drop procedure copy_all;
`
