/** The type of a file by its name. Only web processes load the list of types. */
import { lookup } from 'mime-types'
import { extensionOf, isComposite } from './files.ts'

const ANY_TYPE = 'application/octet-stream'

export function typeOfName(name: string): string {
  const known = lookup(extensionOf(name))
  return known === false || isComposite(known) ? ANY_TYPE : known
}
