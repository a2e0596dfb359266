/** Requests to the API as code to paste, in the languages that the page Integration offers. Pure. */

export const LANGUAGES = ['curl', 'node', 'python'] as const
export type Language = (typeof LANGUAGES)[number]

export const LANGUAGE_NAMES: Record<Language, string> = { curl: 'curl', node: 'Node.js', python: 'Python' }

const indented = (code: string, spaces: number): string => code.replaceAll('\n', `\n${' '.repeat(spaces)}`)

const WRITERS: Record<Language, (url: string, json: string) => string[]> = {
  curl: (url, json) => [
    `curl ${url} \\`,
    `  -H "Authorization: Bearer $HELIOGRAPH_KEY" \\`,
    `  -H "Content-Type: application/json" \\`,
    `  -d '${indented(json.replaceAll("'", `'\\''`), 2)}'`,
  ],
  node: (url, json) => [
    `const response = await fetch('${url}', {`,
    `  method: 'POST',`,
    `  headers: {`,
    `    Authorization: \`Bearer \${process.env.HELIOGRAPH_KEY}\`,`,
    `    'Content-Type': 'application/json',`,
    `  },`,
    `  body: JSON.stringify(${indented(json, 2)}),`,
    `})`,
    `console.log(response.status, await response.json())`,
  ],
  // Objects, lists and strings in JSON are also Python.
  python: (url, json) => [
    `import os, requests`,
    ``,
    `response = requests.post(`,
    `    "${url}",`,
    `    headers={"Authorization": f"Bearer {os.environ['HELIOGRAPH_KEY']}"},`,
    `    json=${indented(json, 4)},`,
    `    timeout=30,`,
    `)`,
    `print(response.status_code, response.json())`,
  ],
}

/** Writes a POST with this body. @param body of objects, lists and strings only */
export const requestCode = (language: Language, url: string, body: unknown): string =>
  WRITERS[language](url, JSON.stringify(body, null, 2)).join('\n')
