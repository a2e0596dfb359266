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
      answer(
        async (team: string, options: { name: string }) =>
          await admin.change(
            (at) => createTopic(at, team, options),
            ({ id }) => ({ team_id: team, action: 'topic.create', subject: options.name, detail: id }),
          ),
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
    .description('delete a topic, and take it off every contact')
    .argument('<team>', 'id of the team', uuid)
    .argument('<id>', 'id of the topic', uuid)
    .action(
      answer(async (team: string, id: string) => {
        const row = await admin.change(
          (at) => removeTopic(at, team, id),
          ({ name }) => ({ team_id: team, action: 'topic.delete', subject: id, detail: name }),
        )
        return { id: row.id, name: row.name, deleted: true }
      }),
    )
}
