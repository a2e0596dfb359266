/** Verbs of `plan`: the plan catalog. */
import { loadCatalog, printCatalog } from '../accounts/plans/catalog.ts'
import { fileJson } from './input.ts'
import { answer, type Verbs } from './noun.ts'

const FILE = { FILE: ['the file, in the form that `plan list` prints (- reads standard input)'] } as const

export const verbs: Verbs = ({ verb, look, admin }) => {
  verb(
    'load FILE',
    'replace the catalog by a JSON file, whole or not at all; plans that it lacks are removed',
    FILE,
  ).action(
    answer(async (file: string) => {
      const content = await fileJson(file)
      return admin.transaction(async (by) => {
        await loadCatalog(by, content)
        return printCatalog(by.tx)
      })
    }),
  )

  verb('list', 'the catalog, in the form that `plan load` takes').action(look(printCatalog))
}
