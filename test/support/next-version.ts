/**
 * A simulated next version for upgrade tests: these sources with additional migrations of each kind, a queue,
 * a field in a job's payload, and a kind of background job.
 */
import { cp, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bareEnvironment } from './environment.ts'
import { MODULES, ROOT } from './program.ts'
import { runProgram } from './programs.ts'

/** An addition to a file, after text that occurs once in it. */
type Addition = { file: string; after: string; more: string }

/** The next version's migrations, one file of each kind that db/migrate.ts knows and README allows. */
const MIGRATIONS: Readonly<Record<string, string>> = {
  'next.sql': `-- A table and columns, with and without a default.
create table next_things (id uuid primary key);
alter table teams add column next_word text;
alter table email_states add column next_seen boolean not null default false;
`,
  'next-length.sql': `-- A column that a trigger fills for the version before, and what must hold of new rows.
alter table contacts add column next_length integer;

create function next_length_of() returns trigger language plpgsql as $$
begin
  new.next_length := length(new.email);
  return new;
end $$;

create trigger contacts_next_length before insert or update on contacts
for each row execute function next_length_of();

alter table contacts add constraint contacts_next_length_known check (next_length is not null) not valid;
`,
  'next-backfill.sql': `-- outside a transaction: old rows, some hundred at a time.
do $$
declare
  done bigint := 0;
  many bigint;
begin
  loop
    update contacts set updated_at = updated_at where (team_id, id) in (
      select team_id, id from contacts where next_length is null order by team_id, id limit 500 for no key update);
    get diagnostics many = row_count;
    exit when many = 0;
    commit;
    done := done + many;
    raise info 'contacts: % lengths', done;
  end loop;
end $$
`,
  'next-index.sql': `-- outside a transaction
drop index concurrently if exists contacts_next_length;

create index concurrently contacts_next_length on contacts (team_id, next_length);
`,
  'next-valid.sql': `-- What the old rows have by now.
alter table contacts validate constraint contacts_next_length_known;
`,
}

const ADDITIONS: readonly Addition[] = [
  {
    file: 'db/queue/jobs.ts',
    after: 'const emailRef = object({',
    more: ' needs_next: boolean().optional(),',
  },
  {
    file: 'db/queue/jobs.ts',
    after: 'export const JOBS = {',
    more: `
  'next-thing': {
    payload: checkRef,
    id: 'check_id',
    options: { ...background, retryLimit: 2, retryDelay: 2, expireInSeconds: 60 },
  },`,
  },
  {
    file: 'workers/registry.ts',
    after: 'export const JOB_HANDLERS: { [J in JobName]: Registration<J> } = {',
    more: `
  'next-thing': {
    handle: ({ jobs, settle }, { database }) =>
      database.transaction((tx) => settle(tx, new Map(jobs.map((job) => [job, { end: 'completed' }])))),
    batchSize: 1,
    loops: 1,
  },`,
  },
  { file: 'db/messages/emails/accept.ts', after: '{ large: true } : {}),', more: ' needs_next: true,' },
  {
    file: 'db/maintenance/background-jobs/kinds.ts',
    after: 'export const KINDS = {',
    more: `
  'next.kind': define({
    ...{ given: readAnything, cursor: readAnything, result: readAnything },
    slice: async () => ({ cursor: null, done: 1, total: 1, result: {} }),
    entry: () => null,
  }),`,
  },
]

/**
 * Creates the next version. @returns its source folder, and its `release`. Both are removed with the test.
 */
export async function nextVersion(t: { teardown(end: () => Promise<void>): unknown }) {
  const root = await mkdtemp(join(tmpdir(), 'heliograph-next-'))
  t.teardown(() => rm(root, { recursive: true, force: true }))
  for (const part of ['api', 'db', 'workers', 'package.json'])
    await cp(join(ROOT, part), join(root, part), { recursive: true })
  await symlink(MODULES, join(root, 'node_modules'))
  const migrations = join(root, 'db/migrations')
  const released = (await readdir(migrations)).length
  for (const [index, [file, text]] of Object.entries(MIGRATIONS).entries())
    await writeFile(join(migrations, `${String(released + index + 1).padStart(4, '0')}-${file}`), text)
  for (const { file, after, more } of ADDITIONS) {
    const [before = '', rest, ...others] = (await readFile(join(root, file), 'utf8')).split(after)
    if (rest === undefined || others.length > 0) throw new Error(`${file} must say once: ${after}`)
    await writeFile(join(root, file), `${before}${after}${more}${rest}`)
  }
  const release = async (url: string) => {
    const env = { ...bareEnvironment(), DATABASE_URL: url }
    await runProgram(process.execPath, [join(root, 'db/migrate.ts')], { env })
  }
  return { root, release }
}
