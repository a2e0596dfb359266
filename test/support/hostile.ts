/** Malicious input: large bodies and headers that are slow for some parser. */

const BOUNDARY = 'a-boundary-that-browsers-might-make'
const MULTIPART = `multipart/form-data; boundary=${BOUNDARY}`
const URLENCODED = 'application/x-www-form-urlencoded'
/** The maximum that is parsed, minus a margin for a page's own fields. */
const FIELDS = 1_900

export type Hostile = { name: string; type: string; body: Buffer }

const filled = (unit: string, bytes: number): string =>
  unit.repeat(Math.ceil(bytes / Buffer.byteLength(unit)))

const part = (head: string, value = ''): string => `--${BOUNDARY}\r\n${head}\r\n\r\n${value}\r\n`
const named = (name: string, more = ''): string => `Content-Disposition: form-data; name="${name}"${more}`

/** Repetitions that may be slow for a parser of pairs. */
export const PAIRS = ['a&', 'a=&', '=', '%', '+', '&', '%zz', '%ff', '%41', 'a=+%00']

/** Builds forms of a size. @param csrf the token of a session's forms. `names` are fields that pages read. */
export function hostileForms(
  bytes: number,
  { csrf = '', names = [] }: { csrf?: string; names?: readonly string[] } = {},
): Hostile[] {
  const own = `csrf=${csrf}&`
  const urlencoded = (name: string, text: string): Hostile => ({
    name: `urlencoded ${name}`,
    type: URLENCODED,
    body: Buffer.from(own + text),
  })
  const multipart = (name: string, text: string): Hostile => ({
    name: `multipart ${name}`,
    type: MULTIPART,
    body: Buffer.from(part(named('csrf'), csrf) + text),
  })
  const end = `--${BOUNDARY}--\r\n`
  const many = (unit: (at: number) => string): string =>
    Array.from({ length: FIELDS }, (_, at) => unit(at)).join('')
  const empty = part(named('file', '; filename=""'))
  // Fills each field that any page reads with such a text.
  const texts = ['\n', ',', ' ', '[', '{{', '<a', '&', 'a:b\n', '"', '\\', '٠']
  const each = (text: string): string =>
    names
      .map(
        (name) =>
          `${name}=${encodeURIComponent(text).repeat(bytes / names.length / encodeURIComponent(text).length)}`,
      )
      .join('&')
  return [
    ...PAIRS.map((unit) => urlencoded(`${unit}×n`, filled(unit, bytes))),
    urlencoded(
      'as many as are read',
      many(() => 'a&'),
    ),
    urlencoded(
      'one of each index',
      many((at) => `name.${at}=${encodeURIComponent(`"${at}"`)}&`),
    ),
    urlencoded(
      'one name',
      many((at) => `topic_ids=${at}&`),
    ),
    urlencoded('a question', `question=x&${filled('a=&', bytes)}`),
    urlencoded('a short question', `question=x&${many(() => 'a=%26&')}`),
    urlencoded('kept', `kept-after-sign-out=yes&${many(() => 'a=%26&')}`),
    multipart('empty files', filled(empty, bytes) + end),
    multipart('as many files as are read', empty.repeat(FIELDS) + end),
    multipart('one header', part(`${named('a')}\r\nX-A: ${filled('x', bytes)}`) + end),
    multipart('headers', part(`${named('a')}\r\n${filled('X: y\r\n', bytes)}`) + end),
    multipart('parameters', part(named('a', filled('; filename="b"', bytes))) + end),
    multipart('no end', part(named('a'), filled(`\r\n--${BOUNDARY.slice(0, -1)}`, bytes))),
    multipart(
      'nested',
      part(`${named('a')}\r\nContent-Type: ${MULTIPART}`, filled(`--${BOUNDARY}\r\n`, bytes)) + end,
    ),
    multipart('a file of one line', part(named('file', '; filename="a.csv"'), filled('a,', bytes)) + end),
    multipart('a file of quotes', part(named('file', '; filename="a.csv"'), filled('"', bytes)) + end),
    multipart('a file of lines', part(named('file', '; filename="a.csv"'), filled('\n', bytes)) + end),
    { name: 'text/plain', type: 'text/plain', body: Buffer.from(filled('a=b\r\n', bytes)) },
    {
      name: 'a type without end',
      type: `multipart/form-data;${filled(' ;boundary', 8_000)}`,
      body: Buffer.from(end),
    },
    ...(names.length > 0
      ? texts.map((text) => urlencoded(`fields of ${JSON.stringify(text)}`, each(text)))
      : []),
  ]
}

/** Builds valid and invalid JSON of a size. */
export const hostileJson = (bytes: number, names: readonly string[] = []): Hostile[] =>
  [
    ...['[', '{"a":', '[{"a":', '"', '1', '-', '"\n', '"a",', '\\u0000', ' ', 'null,'].map((unit) =>
      filled(unit, bytes),
    ),
    `"${filled('\\n', bytes)}`,
    `{"a":"${filled('x', bytes)}\n"}`,
    `[${filled('[],', bytes)}[]]`,
    `{${Array.from({ length: bytes / 16 }, (_, at) => `"a${at}":{}`).join(',')}}`,
    ...names.map((name) => `{${JSON.stringify(name)}:${JSON.stringify(filled('<{{a,;@"', bytes))}}`),
    ...names.map((name) => `{${JSON.stringify(name)}:[${filled('"",', bytes)}""]}`),
  ].flatMap((body, at) => {
    const type = at % 7 === 6 ? 'text/plain' : 'application/json'
    return { name: `${type} ${body.slice(0, 20)}`, type, body: Buffer.from(body) }
  })

/** Builds headers of the maximum total length. */
export const hostileHeaders = (): Record<string, string>[] =>
  [';', 'a=', ' ', ',', '=', '"', '; a="', 'heliograph=', '.', '%'].flatMap((unit) => {
    const long = filled(unit, 7_000)
    return [
      { Cookie: `heliograph${long}`, 'X-Forwarded-For': long, Host: `a${long.replaceAll(' ', '.')}` },
      { Authorization: `Bearer ${long}`, 'Accept-Language': long },
      { 'Content-Type': `application/json${long}`, 'Content-Disposition': `attachment${long}` },
      { Origin: `https://${long}`, 'Idempotency-Key': long },
    ]
  })
