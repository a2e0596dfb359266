/** Runs the functions of the guide "Verify webhooks", each as a program in its language. */
import { writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { GUIDES } from '../../api/docs/guides.ts'
import { bareEnvironment } from './environment.ts'
import { programMissing, runProgram } from './programs.ts'

/** `main` calls `verify` for every five arguments: secret, ID, timestamp, signatures, body. */
type Verifier = { packaged: string; file: string; main: string; mainFile?: string; commands: string[][] }

const VERIFIERS: Readonly<Record<string, Verifier>> = {
  js: {
    ...{ packaged: 'nodejs', file: 'verify.mjs', commands: [[process.execPath, 'verify.mjs']] },
    main: `const args = process.argv.slice(2)
while (args.length > 0) {
  const [secret, id, at, signature, body] = args.splice(0, 5)
  try {
    verify(secret, { 'webhook-id': id, 'webhook-timestamp': at, 'webhook-signature': signature }, Buffer.from(body))
    console.log('valid')
  } catch (error) {
    console.log(error.message)
  }
}`,
  },
  python: {
    ...{ packaged: 'python3', file: 'verify.py', commands: [['python3', 'verify.py']] },
    main: `import sys
args = sys.argv[1:]
while args:
    (secret, id, at, signature, body), args = args[:5], args[5:]
    try:
        verify(secret, {"webhook-id": id, "webhook-timestamp": at, "webhook-signature": signature}, body.encode())
        print("valid")
    except ValueError as error:
        print(error)
`,
  },
  go: {
    ...{ packaged: 'golang-go', file: 'verify.go', mainFile: 'main.go' },
    commands: [['go', 'run', 'verify.go', 'main.go']],
    main: `package main

import (
	"fmt"
	"net/http"
	"os"
)

func main() {
	for args := os.Args[1:]; len(args) > 0; args = args[5:] {
		headers := http.Header{}
		for at, name := range []string{"webhook-id", "webhook-timestamp", "webhook-signature"} {
			headers.Set(name, args[at+1])
		}
		if err := verify(args[0], headers, []byte(args[4])); err != nil {
			fmt.Println(err)
		} else {
			fmt.Println("valid")
		}
	}
}
`,
  },
  ruby: {
    ...{ packaged: 'ruby', file: 'verify.rb', commands: [['ruby', 'verify.rb']] },
    main: `ARGV.each_slice(5) do |secret, id, at, signature, body|
  verify(secret, {"webhook-id" => id, "webhook-timestamp" => at, "webhook-signature" => signature}, body.b)
  puts "valid"
rescue => error
  puts error.message
end
`,
  },
  php: {
    ...{ packaged: 'php-cli', file: 'verify.php', commands: [['php', 'verify.php']] },
    main: `foreach (array_chunk(array_slice($argv, 1), 5) as [$secret, $id, $at, $signature, $body]) {
    try {
        verify($secret, ['Webhook-Id' => $id, 'Webhook-Timestamp' => $at, 'Webhook-Signature' => $signature], $body);
        echo "valid\\n";
    } catch (RuntimeException $error) {
        echo $error->getMessage(), "\\n";
    }
}
`,
  },
  java: {
    ...{ packaged: 'default-jdk-headless', file: 'Webhooks.java', mainFile: 'Main.java' },
    commands: [
      ['javac', 'Webhooks.java', 'Main.java'],
      ['java', '-cp', '.', 'Main'],
    ],
    main: `import java.util.Map;

class Main {
    public static void main(String[] args) throws Exception {
        for (int at = 0; at < args.length; at += 5) {
            Map<String, String> headers = Map.of("webhook-id", args[at + 1], "webhook-timestamp", args[at + 2],
                "webhook-signature", args[at + 3]);
            try {
                Webhooks.verify(args[at], headers, args[at + 4].getBytes("UTF-8"));
                System.out.println("valid");
            } catch (SecurityException error) {
                System.out.println(error.getMessage());
            }
        }
    }
}
`,
  },
}

const guide = GUIDES.find(({ id }) => id === 'verify-webhooks')?.markdown ?? ''
const functions = new Map(
  [...guide.matchAll(/^```(\w+)\n(.*?)^```/gms)].map(([, name, text]) => [name, text]),
)

/** The languages of the guide. */
export const VERIFIER_LANGUAGES = [...functions.keys()].map(String)

const verifierOf = (language: string): Verifier => {
  const verifier = VERIFIERS[language]
  if (!verifier) throw new Error(`${language} has no program that calls the function of the guide`)
  return verifier
}

export function verifierMissing(language: string): Promise<string | null> {
  const { commands, packaged } = verifierOf(language)
  return programMissing(commands[0]?.[0] ?? '', packaged)
}

/** A received webhook, and the secret to verify it with. */
export type Signed = { secret: string; headers: Record<string, unknown>; raw: string }

/** Verifies webhooks with a language's function. @returns `valid` or the error for each. */
export async function verifiedIn(language: string, webhooks: readonly Signed[], directory: string) {
  const { file, main, mainFile, commands } = verifierOf(language)
  const text = functions.get(language) ?? ''
  await writeFile(join(directory, file), mainFile ? text : `${text}\n${main}`)
  if (mainFile) await writeFile(join(directory, mainFile), main)
  const args = webhooks.flatMap(({ secret, headers, raw }) => [
    ...[secret, headers['webhook-id'], headers['webhook-timestamp'], headers['webhook-signature'], raw].map(
      String,
    ),
  ])
  const bare = bareEnvironment()
  const PATH = [dirname(process.execPath), bare.PATH].join(':')
  const env = { ...bare, PATH, GOCACHE: join(directory, 'go') }
  let printed = ''
  for (const [at, [program = '', ...given]] of commands.entries()) {
    const all = at === commands.length - 1 ? [...given, ...args] : given
    printed = (await runProgram(program, all, { cwd: directory, env })).stdout
  }
  return printed.trimEnd().split('\n')
}
