/** Publishes changes of contacts' subscriptions and suppressions, in the transaction of the change. */
import type { ContactEvent } from '../../channels/events/domain-event.ts'
import { publish } from '../../channels/events/webhooks.ts'
import type { Tx } from '../../postgres/pool.ts'

type ConsentChange = Pick<
  ContactEvent,
  'team_id' | 'kind' | 'topic_ids' | 'about' | 'occurred_at' | 'detail'
> & {
  /** Null for an address that isn't a contact. */
  contact_id: string | null
  has_listeners: boolean
}

export const publishContacts = (tx: Tx, changes: readonly ConsentChange[]): Promise<void> =>
  publish(
    tx,
    changes
      .filter(({ has_listeners }) => has_listeners)
      .map(({ team_id, contact_id: id, kind, topic_ids, about, occurred_at, detail }) => ({
        subject: 'contact',
        ...{ team_id, id, kind, topic_ids, about, occurred_at, detail },
      })),
  )
