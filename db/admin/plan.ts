/** Verbs of `plan`: the plan catalog. */
import { loadCatalog, printCatalog } from '../accounts/plans/catalog.ts'
import type { At } from '../postgres/pool.ts'
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
        const load = async ({ tx }: At) => {
          await loadCatalog(tx, content)
          return printCatalog(tx)
        }
        return admin.change(load, ({ plans }) => ({
          ...{ team_id: null, action: 'plan.load', subject: 'catalog' },
          detail: plans.map(({ key }) => key).join(', '),
        }))
      }),
    )

  plan
    .command('list')
    .description('the catalog, in the form that `plan load` takes')
    .action(answer(async () => printCatalog(await admin.database())))
}
