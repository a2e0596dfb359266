/**
 * Sample calls: each operation in curl, Node.js and Python, and sending a batch with retries. All of them
 * need HELIOGRAPH_URL and HELIOGRAPH_KEY, and no package. IDs are shell variables. Pure.
 */
import { keysOf } from '../../db/validation/keys.ts'
import type { About, Described } from './about.ts'
import { DOMAIN, fill, fillExample, type Shown } from './shown.ts'

/** `given` are statements that run first, with values for the reader to replace. */
export type Sample = { title: string; text: string; given?: string }

/** Fills the parameters of a path: an email address, and a variable for an ID. */
export const pathAsked = (path: string): string =>
  path.replace(':email', 'ana@example.org').replace(':id', '$ID')

/** A call to write: its path with the query, its body or file. */
export type Call = {
  method: string
  path: string
  isPublic: boolean
  body: Readonly<Record<string, unknown>> | undefined
  file: About['file']
}

export function buildCall({ method, path, access, about }: Described, shown: Shown): Call {
  const query = about.file ? `?filename=${about.file.name}` : ''
  return {
    ...{ method, path: pathAsked(path) + query, isPublic: access === 'public' },
    ...{ body: fillExample(about.example, shown), file: about.file },
  }
}

const typeOf = ({ body, file }: Call): string | undefined => file?.type ?? (body && 'application/json')

/** Writes JSON, with each variable as the language reads it. @param indent of the first line */
const json = (value: unknown, indent: number, variable: (name: string) => string): string =>
  JSON.stringify(value, null, 2)
    .replaceAll('\n', `\n${' '.repeat(indent)}`)
    .replaceAll(/"\$([A-Z_]+)"/g, (_, name: string) => variable(name))

function curl(call: Call): string {
  const { method, path, isPublic, body, file } = call
  const type = typeOf(call)
  // With a body, curl's default is POST.
  const isSaid = method !== 'GET' && (method !== 'POST' || type === undefined)
  const lines = [
    `curl ${isSaid ? `-X ${method} ` : ''}"$HELIOGRAPH_URL${path}"`,
    ...(isPublic ? [] : ['-H "Authorization: Bearer $HELIOGRAPH_KEY"']),
    ...(type ? [`-H 'Content-Type: ${type}'`] : []),
    ...(body ? [`-d '${json(body, 2, (name) => `"'"$${name}"'"`)}'`] : []),
    ...(file ? [`--data-binary @${file.name}`] : []),
  ]
  const made = file ? `echo '${file.text}' > ${file.name}\n` : ''
  return made + lines.join(' \\\n  ')
}

function node(call: Call): string {
  const { method, path, isPublic, body, file } = call
  const type = typeOf(call)
  const headers = [
    ...(isPublic ? [] : ['Authorization: `Bearer ${process.env.HELIOGRAPH_KEY}`']),
    ...(type ? [`'Content-Type': '${type}'`] : []),
  ]
  const options = [
    ...(method === 'GET' ? [] : [`method: '${method}',`]),
    ...(headers.length > 0 ? [`headers: { ${headers.join(', ')} },`] : []),
    ...(body ? [`body: JSON.stringify(${json(body, 2, (name) => `process.env.${name}`)}),`] : []),
    ...(file ? [`body: await readFile('${file.name}'),`] : []),
  ]
  const given = options.length > 0 ? `, {\n  ${options.join('\n  ')}\n}` : ''
  const made = file
    ? `import { readFile, writeFile } from 'node:fs/promises'\n\nawait writeFile('${file.name}', '${file.text}')\n`
    : ''
  const url = path.replaceAll('$ID', '${process.env.ID}')
  return `${made}const response = await fetch(\`\${process.env.HELIOGRAPH_URL}${url}\`${given})
console.log(response.status, await response.text())`
}

function python(call: Call): string {
  const { method, path, isPublic, body, file } = call
  const type = typeOf(call)
  const headers = [
    ...(isPublic ? [] : ['"Authorization": "Bearer " + os.environ["HELIOGRAPH_KEY"]']),
    ...(type ? [`"Content-Type": "${type}"`] : []),
  ]
  const options = [
    `method="${method}",`,
    ...(headers.length > 0 ? [`headers={${headers.join(', ')}},`] : []),
    ...(body ? [`data=json.dumps(${json(body, 4, (name) => `os.environ["${name}"]`)}).encode(),`] : []),
    ...(file ? [`data=pathlib.Path("${file.name}").read_bytes(),`] : []),
  ]
  const modules = [body ? 'json' : '', 'os', file ? 'pathlib' : '', 'urllib.error', 'urllib.request']
  const made = file ? `pathlib.Path("${file.name}").write_text("${file.text}")\n` : ''
  const url = `"${path.replaceAll('$ID', '" + os.environ["ID"] + "')}"`.replace(/ \+ ""$/, '')
  return `import ${modules.filter(Boolean).join(', ')}

${made}request = urllib.request.Request(
    os.environ["HELIOGRAPH_URL"] + ${url},
    ${options.join('\n    ')}
)
try:
    response = urllib.request.urlopen(request, timeout=30)
except urllib.error.HTTPError as error:
    response = error
print(response.status, response.read().decode())`
}

const WRITTEN = { curl, 'Node.js': node, Python: python }

export const LANGUAGES = keysOf(WRITTEN)

/** Writes a POST with a body in one of the languages. */
export const writePost = (language: keyof typeof WRITTEN, path: string, body: Call['body']): string =>
  WRITTEN[language]({ method: 'POST', path, isPublic: false, body, file: undefined })

export const buildSamples = (route: Described, shown: Shown): Sample[] =>
  Object.entries(WRITTEN).map(([title, write]) => ({ title, text: write(buildCall(route, shown)) }))

/** Returns the samples of a guide, each below the values for the reader to replace. */
export const filledSamples = ({ samples }: { samples: readonly Sample[] }, shown: Shown): Sample[] =>
  samples.map(({ title, text, given }) => ({
    title,
    text: fill(given ? `${given}\n\n${text}` : text, shown),
  }))

const NODE_EMAILS = `const emails = ['ana', 'ben'].map((name) => ({
  from: 'Acme <hello@${DOMAIN}>',
  to: [\`\${name}@example.org\`],
  subject: 'Your order has shipped',
  html: '<p>It is on its way.</p>',
  idempotency_key: \`order-1001-\${name}\`,
}))`

const PYTHON_EMAILS = `emails = [
    {
        "from": "Acme <hello@${DOMAIN}>",
        "to": [f"{name}@example.org"],
        "subject": "Your order has shipped",
        "html": "<p>It is on its way.</p>",
        "idempotency_key": f"order-1001-{name}",
    }
    for name in ["ana", "ben"]
]`

/** Sends `emails`, each with its own key, until each is accepted or permanently rejected. */
export const BATCH_SAMPLES: readonly Sample[] = [
  {
    title: 'Node.js',
    given: NODE_EMAILS,
    text: `async function post(emails) {
  const response = await fetch(process.env.HELIOGRAPH_URL + '/v1/emails/batch', {
    method: 'POST',
    headers: {
      Authorization: 'Bearer ' + process.env.HELIOGRAPH_KEY,
      'Content-Type': 'application/json',
    },
    body: JSON.stringify({ emails }),
  })
  const wait = Number(response.headers.get('Retry-After') ?? 1)
  return { status: response.status, wait, text: await response.text() }
}

let left = emails
while (left.length > 0) {
  // Repeats the call if the response is missing or incomplete.
  const response = await post(left).catch(() => null)
  if (response?.status === 200) {
    const { data } = JSON.parse(response.text)
    for (const { index, error } of data)
      if (error && error.code !== 'rate_limited') console.error(left[index].to, error.message)
    left = data.filter(({ error }) => error?.code === 'rate_limited').map(({ index }) => left[index])
  } else if (response && response.status < 500 && response.status !== 429) {
    throw new Error(response.text) // A retry would return the same error.
  }
  const wait = response?.wait ?? 1
  if (left.length > 0) await new Promise((resolve) => setTimeout(resolve, wait * 1000))
}`,
  },
  {
    title: 'Python',
    given: PYTHON_EMAILS,
    text: `import http.client, json, os, sys, time, urllib.error, urllib.request

def post(emails):
    request = urllib.request.Request(
        os.environ["HELIOGRAPH_URL"] + "/v1/emails/batch",
        data=json.dumps({"emails": emails}).encode(),
        headers={
            "Authorization": "Bearer " + os.environ["HELIOGRAPH_KEY"],
            "Content-Type": "application/json",
        },
    )
    try:
        response = urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as error:
        response = error
    return response.status, float(response.headers.get("Retry-After", 1)), response.read()

left = emails
while left:
    try:
        status, wait, body = post(left)
    except (OSError, http.client.HTTPException):
        status, wait, body = 503, 1, b""  # Repeats the call if the response is missing or incomplete.
    if status == 200:
        data = json.loads(body)["data"]
        codes = [item.get("error", {}).get("code") for item in data]
        for item, code in zip(data, codes):
            if code not in (None, "rate_limited"):
                print(left[item["index"]]["to"], item["error"]["message"], file=sys.stderr)
        left = [left[item["index"]] for item, code in zip(data, codes) if code == "rate_limited"]
    elif status < 500 and status != 429:
        raise RuntimeError(body.decode())  # A retry would return the same error.
    if left:
        time.sleep(wait)`,
  },
]

/** Sends `emails`, each with its own key, in batches as large as the send rate allows. */
export const SIZED_BATCH_SAMPLES: readonly Sample[] = [
  {
    title: 'Node.js',
    given: NODE_EMAILS,
    text: `let most = 5 // until a response allows more
while (emails.length > 0) {
  const response = await fetch(process.env.HELIOGRAPH_URL + '/v1/emails/batch', {
    method: 'POST',
    headers: {
      Authorization: 'Bearer ' + process.env.HELIOGRAPH_KEY,
      'Content-Type': 'application/json',
    },
    body: JSON.stringify({ emails: emails.slice(0, most) }),
  })
  if (!response.ok) throw new Error(await response.text())
  const { data } = await response.json()
  const late = data.findIndex(({ error }) => error?.code === 'rate_limited')
  emails.splice(0, late === -1 ? data.length : late) // Sends the others again.
  const [, r, t] = /"sends";r=(\\d+);t=(\\d+)/.exec(response.headers.get('RateLimit')) ?? []
  if (r === undefined) continue // No item was counted.
  const [, q] = /"sends";q=(\\d+)/.exec(response.headers.get('RateLimit-Policy'))
  const few = r < q / 2
  if (few) await new Promise((done) => setTimeout(done, t * 1000))
  most = Math.min(100, few ? q : r)
}`,
  },
]
