/** Verbs of `plan`: the plan catalog. */
import { loadCatalog, printCatalog } from '../accounts/plans/catalog.ts'
import { fileJson } from './input.ts'
import { answer, type Verbs } from './noun.ts'

const FILE = { FILE: ['the file, in the format `plan list` prints (- reads standard input)'] } as const

export const verbs: Verbs = ({ verb, look, admin }) => {
  verb(
    'load FILE',
    'Replace the plan catalog with a JSON file. Plans that aren’t in the file are removed',
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

  verb('list', 'Print the plan catalog, in the format `plan load` reads').action(look(printCatalog))
}
