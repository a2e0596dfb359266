/**
 * Runs samples as pasted, all of a language in one process, because starting one for each is slow. Each sample
 * is a separate module, and only has its own settings.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

/** Both read `{ text, env }` from each line of stdin, and print `{ out }` or `{ fault }` for it. */
const PROGRAMS: Record<string, [program: string, ...args: string[]]> = {
  'Node.js': [
    process.execPath,
    '--input-type=module',
    '-e',
    `import { writeFileSync } from 'node:fs'
    import { join } from 'node:path'
    import { createInterface } from 'node:readline'
    import { pathToFileURL } from 'node:url'
    const [bare, write] = [process.env, process.stdout.write.bind(process.stdout)]
    let nth = 0
    for await (const line of createInterface({ input: process.stdin })) {
      const { text, env } = JSON.parse(line)
      const file = join(process.cwd(), 'sample-' + (nth += 1) + '.mjs')
      writeFileSync(file, text)
      process.env = { ...bare, ...env }
      let out = ''
      process.stdout.write = (chunk) => Boolean((out += chunk))
      const fault = await import(pathToFileURL(file)).then(() => undefined, (error) => String(error?.stack))
      write(JSON.stringify({ out, fault }) + '\\n')
    }`,
  ],
  Python: [
    'python3',
    '-c',
    `import contextlib, io, json, os, sys, traceback
bare = dict(os.environ)
for line in sys.stdin:
    sample = json.loads(line)
    os.environ.clear()
    os.environ.update(bare | sample["env"])
    out, fault = io.StringIO(), None
    try:
        with contextlib.redirect_stdout(out):
            exec(compile(sample["text"], "sample", "exec"), {"__name__": "__main__"})
    except BaseException:
        fault = traceback.format_exc()
    print(json.dumps({"out": out.getvalue(), "fault": fault}), flush=True)`,
  ],
}

type Output = { out: string; fault?: string | null }

/** Starts the process of a language. @returns a function that runs one sample and returns its output. */
export function startSamples(
  t: { teardown(end: () => Promise<void>): unknown },
  language: string,
  { cwd, env }: { cwd: string; env: Record<string, string> },
): (text: string, own: Record<string, string>) => Promise<string> {
  const [program, ...args] = PROGRAMS[language] ?? ['false']
  const child = spawn(program, args, { cwd, env, stdio: ['pipe', 'pipe', 'inherit'] })
  const ended = once(child, 'close')
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  t.teardown(async () => {
    child.stdin.end()
    const [code] = await ended
    if (code !== 0) throw new Error(`the program of ${language} ended with ${code}`)
  })
  return async (text, own) => {
    child.stdin.write(`${JSON.stringify({ text, env: own })}\n`)
    const { value, done } = await lines.next()
    if (done) throw new Error(`the program of ${language} ended`)
    const { out, fault }: Output = JSON.parse(value)
    if (fault) throw new Error(`${fault}${out}`)
    return out
  }
}
