/** The guides as Markdown, one file each, and llms.txt, which lists them for programs. Pure. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { VERSION } from '../../db/process/version.ts'
import { GUIDES, type Guide } from './guides.ts'
import { filledSamples } from './samples.ts'
import { fill, type Shown } from './shown.ts'

const GUIDE_IDS = new Set(GUIDES.map(({ id }) => id))

export const findGuide = (id: string): Guide | undefined => GUIDES.find((guide) => guide.id === id)

const guideUrl = (home: string, id: string): string => `${home}/docs/${id}.md`

/** Makes links absolute: to another guide, to a part of the page, or to a path of the service. */
const withWholeLinks = (text: string, home: string): string =>
  text
    .replaceAll(/\]\(#([\w-]+)\)/g, (_, id: string) =>
      GUIDE_IDS.has(id) ? `](${guideUrl(home, id)})` : `](${home}/docs#${id})`,
    )
    .replaceAll('](/', `](${home}/`)

const listing = (title: string, text: string): string => `## ${title}\n\n\`\`\`\n${text}\n\`\`\`\n`

/** Writes a guide with all its listings. */
export function guideMarkdown(guide: Guide, shown: Shown): string {
  const text = withWholeLinks(fill(guide.markdown, shown), shown.home)
  const samples = filledSamples(guide, shown).map(({ title, text }) => listing(title, text))
  const examples = guide.examples.map(({ type, body }) => listing(type, JSON.stringify(body, null, 2)))
  return [`# ${guide.title}\n${text.trimEnd()}\n`, ...samples, ...examples].join('\n')
}

/** The first sentence of a guide's text, which may follow a heading or a table. */
function readSummary({ markdown }: Guide): string {
  const paragraph = markdown.split(/\n{2,}|^\n/).find((block) => /^[A-Z`]/.test(block)) ?? ''
  const [sentence = ''] = /^(?:`[^`]*`|[^`])*?[.:](?= |$)/.exec(paragraph.replaceAll('\n', ' ')) ?? []
  return sentence.replace(/:$/, '.')
}

const LLMS = readFileSync(join(import.meta.dirname, 'llms.md'), 'utf8')

/** Writes /llms.txt (llmstxt.org): the service in a few sentences, then links with a summary each. */
export function llmsText(shown: Shown): string {
  const guides = GUIDES.map(
    (guide) => `- [${guide.title}](${guideUrl(shown.home, guide.id)}): ${readSummary(guide)}`,
  )
  const text = LLMS.replace('{{version}}', VERSION).replace('{{guides}}', guides.join('\n'))
  return withWholeLinks(fill(text, shown), shown.home)
}
