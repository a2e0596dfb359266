/**
 * Calls to paste: each operation in curl, Node.js and Python, and the sending of a batch with retries. Plain text; all
 * of them need HELIOGRAPH_URL and HELIOGRAPH_KEY, and no package. Pure.
 */
import type { Described } from './about.ts'

export type Sample = { title: string; text: string }

const asked = ({ path }: Described): string => path.replace(':email', 'ana@example.org')

/** JSON, of which the first line stands behind `indent` blanks already. */
const json = (value: unknown, indent: number): string =>
  JSON.stringify(value, null, 2).replaceAll('\n', `\n${' '.repeat(indent)}`)

function curl(route: Described): string {
  const { method, access, about } = route
  const lines = [
    `curl ${method === 'GET' || about.example ? '' : `-X ${method} `}"$HELIOGRAPH_URL${asked(route)}"`,
    ...(method === 'PATCH' ? ['-X PATCH'] : []),
    ...(access === 'public' ? [] : ['-H "Authorization: Bearer $HELIOGRAPH_KEY"']),
    ...(about.example
      ? ["-H 'Content-Type: application/json'", `-d '${JSON.stringify(about.example, null, 2)}'`]
      : []),
  ]
  return lines.join(' \\\n  ')
}

function node(route: Described): string {
  const { method, access, about } = route
  const headers = [
    ...(access === 'public' ? [] : ['Authorization: `Bearer ${process.env.HELIOGRAPH_KEY}`']),
    ...(about.example ? ["'Content-Type': 'application/json'"] : []),
  ]
  const options = [
    ...(method === 'GET' ? [] : [`method: '${method}',`]),
    ...(headers.length > 0 ? [`headers: { ${headers.join(', ')} },`] : []),
    ...(about.example ? [`body: JSON.stringify(${json(about.example, 2)}),`] : []),
  ]
  const given = options.length > 0 ? `, {\n  ${options.join('\n  ')}\n}` : ''
  return `const answer = await fetch(\`\${process.env.HELIOGRAPH_URL}${asked(route)}\`${given})
console.log(answer.status, await answer.text())`
}

function python(route: Described): string {
  const { method, access, about } = route
  const headers = [
    ...(access === 'public' ? [] : ['"Authorization": "Bearer " + os.environ["HELIOGRAPH_KEY"]']),
    ...(about.example ? ['"Content-Type": "application/json"'] : []),
  ]
  const options = [
    `method="${method}",`,
    ...(headers.length > 0 ? [`headers={${headers.join(', ')}},`] : []),
    ...(about.example ? [`data=json.dumps(${json(about.example, 4)}).encode(),`] : []),
  ]
  return `import ${about.example ? 'json, ' : ''}os, urllib.error, urllib.request

request = urllib.request.Request(
    os.environ["HELIOGRAPH_URL"] + "${asked(route)}",
    ${options.join('\n    ')}
)
try:
    answer = urllib.request.urlopen(request, timeout=30)
except urllib.error.HTTPError as refusal:
    answer = refusal
print(answer.status, answer.read().decode())`
}

const WRITTEN = { curl, 'Node.js': node, Python: python }

export const LANGUAGES = Object.keys(WRITTEN)

export const samplesOf = (route: Described): Sample[] =>
  Object.entries(WRITTEN).map(([title, write]) => ({ title, text: write(route) }))

/** Sends `emails`, each with a key of its own, until every one is accepted or refused for good. */
export const BATCH_SAMPLES: readonly Sample[] = [
  {
    title: 'Node.js',
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
  // No answer, or half of one: the same call again.
  const answer = await post(left).catch(() => null)
  if (answer?.status === 200) {
    const { data } = JSON.parse(answer.text)
    for (const { index, error } of data)
      if (error && error.code !== 'rate_limited') console.error(left[index].to, error.message)
    left = data.filter(({ error }) => error?.code === 'rate_limited').map(({ index }) => left[index])
  } else if (answer && answer.status < 500 && answer.status !== 429) {
    throw new Error(answer.text) // It would be refused again.
  }
  const wait = answer?.wait ?? 1
  if (left.length > 0) await new Promise((resolve) => setTimeout(resolve, wait * 1000))
}`,
  },
  {
    title: 'Python',
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
    except urllib.error.HTTPError as refusal:
        response = refusal
    return response.status, float(response.headers.get("Retry-After", 1)), response.read()

left = emails
while left:
    try:
        status, wait, body = post(left)
    except (OSError, http.client.HTTPException):
        status, wait, body = 503, 1, b""  # No answer, or half of one: the same call again.
    if status == 200:
        data = json.loads(body)["data"]
        codes = [item.get("error", {}).get("code") for item in data]
        for item, code in zip(data, codes):
            if code not in (None, "rate_limited"):
                print(left[item["index"]]["to"], item["error"]["message"], file=sys.stderr)
        left = [left[item["index"]] for item, code in zip(data, codes) if code == "rate_limited"]
    elif status < 500 and status != 429:
        raise RuntimeError(body.decode())  # It would be refused again.
    if left:
        time.sleep(wait)`,
  },
]

/** Sends `emails`, each with a key of its own, in batches as large as the send rate takes at once. */
export const SIZED_BATCH_SAMPLES: readonly Sample[] = [
  {
    title: 'Node.js',
    text: `let most = 5 // until an answer says more
while (emails.length > 0) {
  const answer = await fetch(process.env.HELIOGRAPH_URL + '/v1/emails/batch', {
    method: 'POST',
    headers: {
      Authorization: 'Bearer ' + process.env.HELIOGRAPH_KEY,
      'Content-Type': 'application/json',
    },
    body: JSON.stringify({ emails: emails.slice(0, most) }),
  })
  if (!answer.ok) throw new Error(await answer.text())
  const { data } = await answer.json()
  const late = data.findIndex(({ error }) => error?.code === 'rate_limited')
  emails.splice(0, late === -1 ? data.length : late) // The others come again.
  const [, r, t] = /"sends";r=(\\d+);t=(\\d+)/.exec(answer.headers.get('RateLimit')) ?? []
  if (r === undefined) continue // No item took a place.
  const [, q] = /"sends";q=(\\d+)/.exec(answer.headers.get('RateLimit-Policy'))
  const few = r < q / 2
  if (few) await new Promise((done) => setTimeout(done, t * 1000))
  most = Math.min(100, few ? q : r)
}`,
  },
]
