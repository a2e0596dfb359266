/** A replacement for the parser's thread that hangs, dies or throws, depending on the path. */
import { serialize } from 'node:v8'
import type { Question, Reply } from '../../api/http/parser.ts'

const hoard: number[][] = []

export default function answer(question: Question): Reply {
  const path = 'path' in question ? question.path : ''
  if (path === '/exit') process.exit(1)
  if (path === '/throw') throw new Error('a fault of ours')
  while (path === '/hang');
  while (path === '/hoard') hoard.push(new Array(100_000).fill(0))
  return { body: new Uint8Array(serialize(path)) }
}
