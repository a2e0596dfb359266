/** The parts that all emails of a broadcast share. */
import type { BroadcastRow } from '../../../../db/messages/broadcasts/broadcasts.sql.ts'
import { toMailing } from '../../../../db/messages/broadcasts/mailing.ts'
import t from '../../../support/tap.ts'

const row = {
  ...{ team_id: '01920000-0000-7000-8000-00000000000a', id: 'broadcast', template_id: 'template' },
  ...{ from_address: 'hello@example.com', subject: 'Hi', headers: null, reply_to: '', tags: [] },
} as unknown as BroadcastRow

t.test('an email without topics uses the broadcast as its list', async (t) => {
  const { item } = toMailing({ ...row, topic_ids: [] }, [])
  t.match(item.headers, {
    'List-Id': '<broadcast.example.com>',
    'Feedback-ID': 'broadcast:broadcast:broadcast:00000000000a',
  })
  const aimed = toMailing({ ...row, topic_ids: ['news', 'offers'] }, [])
  t.match(aimed.item.headers, { 'List-Id': '<news.example.com>' })
})
