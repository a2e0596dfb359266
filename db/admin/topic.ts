/** Verbs of `topic`: what a team's contacts can be subscribed to. */

import { teamOrRefusal } from '../accounts/teams/view.ts'
import { topicsOfTeam } from '../audience/contacts/topics.sql.ts'
import { createTopic, removeTopic } from '../audience/contacts/topics.ts'
import { uuid } from './input.ts'
import { answer, type Verbs } from './noun.ts'

export const verbs: Verbs = (topic, admin) => {
  topic
    .command('create')
    .description('make a topic')
    .argument('<team>', 'id of the team', uuid)
    .requiredOption('--name <name>', 'what people call it, once per team')
    .action(
      answer((team: string, options: { name: string }) =>
        admin.transaction((by) => createTopic(by, team, options)),
      ),
    )

  topic
    .command('list')
    .description('the topics of a team')
    .argument('<team>', 'id of the team', uuid)
    .action(
      answer(async (team: string) => {
        const database = await admin.database()
        await teamOrRefusal(database, team)
        return topicsOfTeam(database, team)
      }),
    )

  topic
    .command('delete')
    .description('delete a topic that no broadcast uses, and take it off every contact')
    .argument('<team>', 'id of the team', uuid)
    .argument('<id>', 'id of the topic', uuid)
    .action(
      answer(async (team: string, id: string) => {
        const row = await admin.transaction((by) => removeTopic(by, team, id))
        return { id: row.id, name: row.name, deleted: true }
      }),
    )
}
