/** Reads the documents as text: their sentences, their headings and their links. */
import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { ROOT } from './sources.ts'

type Document = { file: string; text: string }

const FOLDERS = ['*.md', '.github/*.md', '{api,db,workers,test}/**/*.md']

export async function documents(): Promise<Document[]> {
  const files = await Array.fromAsync(glob(FOLDERS, { cwd: ROOT }))
  return Promise.all(
    files.sort().map(async (file) => ({ file, text: await readFile(join(ROOT, file), 'utf8') })),
  )
}

const withoutCode = (text: string): string => text.replaceAll(/^```[\s\S]*?^```/gm, '')

/** Returns the sentences of paragraphs and lists, with inline code as one word. Tables and headings have none. */
export function sentencesOf(text: string): string[] {
  const blocks = withoutCode(text)
    .replaceAll(/^( {4}.*|#.*|\|.*)$/gm, '\n')
    .replaceAll(/^\s*([-*]|\d+\.) /gm, '\n\n')
    .split(/\n\s*\n/)
  return blocks
    .map((block) =>
      block
        .replaceAll(/`[^`]*`/g, 'code')
        .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
        .replaceAll(/[*_]+/g, '')
        .replaceAll(/\s+/g, ' ')
        .trim(),
    )
    .flatMap((block) => block.split(/(?<=[.!?])["”’)]* +(?=["“(]?[A-Z0-9c])/))
    .filter((sentence) => /[a-z]/i.test(sentence))
}

export const countWords = (sentence: string): number => sentence.match(/[A-Za-z0-9][\w'’./-]*/g)?.length ?? 0

/** Returns the names by which links refer to a document's headings, as GitHub makes them. */
export const anchorsOf = (text: string): ReadonlySet<string> =>
  new Set(
    [...withoutCode(text).matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\w\- ]/g, '')
        .replaceAll(' ', '-'),
    ),
  )

/** Returns the targets of links to other documents, headings and folders. */
export const linksOf = (text: string): string[] =>
  [...withoutCode(text).matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, target = '']) => target)
    .filter((target) => !/^[a-z]+:/.test(target))
