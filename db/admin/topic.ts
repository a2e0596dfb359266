/** Verbs of `topic`: the topics that a team's contacts subscribe to. */
import { topicsOfTeam } from '../audience/contacts/topics.sql.ts'
import { createTopic, removeTopic } from '../audience/contacts/topics.ts'
import type { Verbs } from './noun.ts'

export const verbs: Verbs = ({ verb, list, change }) => {
  verb('create TEAM', 'Create a topic')
    .requiredOption('--name <name>', 'the name to display, unique in the team')
    .action(change(createTopic))

  list('List the topics of a team', topicsOfTeam)

  verb('delete TEAM ID', 'Delete a topic that no broadcast uses, and remove it from all contacts').action(
    change(async (by, team: string, topic: string) => {
      const { id, name } = await removeTopic(by, team, topic)
      return { id, name, deleted: true }
    }),
  )
}
