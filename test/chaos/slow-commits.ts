/** Slow commits, so that processes are killed during them. */
import type { World } from './world.ts'

/** Delays every commit that stores an email. @returns a function that ends that. */
export async function slowCommits({ sql }: World, seconds: number): Promise<() => Promise<unknown>> {
  await sql(`create function slow_commit() returns trigger language plpgsql as
    'begin perform pg_sleep(${seconds}); return null; end'`)
  await sql(`create constraint trigger slow_commit after insert on accepted_emails deferrable initially deferred
    for each row execute function slow_commit()`)
  return () => sql('drop function slow_commit cascade')
}
