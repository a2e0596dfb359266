/** Verbs of `plan`: the plan catalog. */
import { loadCatalog, printCatalog } from '../accounts/plans/catalog.ts'
import { fileJson } from './input.ts'
import { answer, type Verbs } from './noun.ts'

export const verbs: Verbs = (plan, admin) => {
  plan
    .command('load')
    .description('replace the catalog by a JSON file, whole or not at all; plans that it lacks are removed')
    .argument('<file>', 'the file, in the form that `plan list` prints (- reads standard input)')
    .action(
      answer(async (file: string) => {
        const content = await fileJson(file)
        return admin.transaction(async (by) => {
          await loadCatalog(by, content)
          return printCatalog(by.tx)
        })
      }),
    )

  plan
    .command('list')
    .description('the catalog, in the form that `plan load` takes')
    .action(answer(async () => printCatalog(await admin.database())))
}
