/** Verbs of `topic`: what a team's contacts can be subscribed to. */
import { topicsOfTeam } from '../audience/contacts/topics.sql.ts'
import { createTopic, removeTopic } from '../audience/contacts/topics.ts'
import type { Verbs } from './noun.ts'

export const verbs: Verbs = ({ verb, list, change }) => {
  verb('create TEAM', 'make a topic')
    .requiredOption('--name <name>', 'what people call it, once per team')
    .action(change(createTopic))

  list('the topics of a team', topicsOfTeam)

  verb('delete TEAM ID', 'delete a topic that no broadcast uses, and take it off every contact').action(
    change(async (by, team: string, topic: string) => {
      const { id, name } = await removeTopic(by, team, topic)
      return { id, name, deleted: true }
    }),
  )
}
