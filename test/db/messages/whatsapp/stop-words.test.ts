/** The keywords that opt recipients out and in. */
import { cutPost } from '../../../../db/messages/whatsapp/cut-post.ts'
import { findKeyword, parseStopWords, stopWordsSetting } from '../../../../db/messages/whatsapp/stop-words.ts'
import t from '../../../support/tap.ts'

t.test('keywords only match complete texts, in any case', async (t) => {
  const words = 'STOP UNSUBSCRIBE ARRET ARRÊT STOPP BAJA PARAR SAIR ABMELDEN AFMELDEN DISISCRIVIMI'.split(' ')
  for (const word of words) {
    for (const text of [word, word.toLowerCase(), `\u00a0 ${word}\u2003\n`, word.normalize('NFD')])
      t.equal(findKeyword(text, []), 'stop', JSON.stringify(text))
  }
  for (const word of ['START', 'unstop']) t.equal(findKeyword(word, []), 'start')
  for (const text of ['CANCEL', 'please stop', 'stop it', 'stop.', '', 5, null])
    t.equal(findKeyword(text, []), null)
})

t.test('WHATSAPP_STOP_WORDS adds keywords', async (t) => {
  const added = parseStopWords(' Fin , DÉSABONNER,')
  t.equal(findKeyword('désabonner', added), 'stop')
  t.equal(findKeyword('FIN', added), 'stop')
  t.equal(findKeyword('FIN', []), null)
  t.equal(findKeyword('schluß', parseStopWords('SCHLUSS')), 'stop')
  t.equal(findKeyword('τέλος', parseStopWords('ΤΈΛΟΣ')), 'stop')
  t.equal(findKeyword('τέλοσ', parseStopWords('τέλος')), 'stop')
  const message = { id: 'w', from: '15555550101', timestamp: '1', type: 'text', text: { body: 'Fin' } }
  const post = { entry: [{ changes: [{ field: 'messages', value: { messages: [message] } }] }] }
  const body = Buffer.from(JSON.stringify(post))
  t.match(cutPost(body, added)?.body?.toString(), '"keyword":"stop"')
  t.equal(cutPost(body)?.body, null)
})

t.test('a keyword has at most 100 characters', async (t) => {
  for (const [length, found] of [
    [100, 'stop'],
    [101, null],
  ] as const)
    t.equal(findKeyword('x'.repeat(length), ['x'.repeat(length)]), found)
})

t.test('WHATSAPP_STOP_WORDS must not contain CANCEL', async (t) => {
  for (const allowed of [undefined, 'fin', 'fin, cancelar', 'cancelled'])
    t.ok(stopWordsSetting.isValidSync(allowed), String(allowed))
  for (const refused of ['cancel', 'fin, Cancel', ' CANCEL ,fin'])
    t.throws(
      () => stopWordsSetting.validateSync(refused),
      { type: 'stop words', message: /must not contain CANCEL/ },
      refused,
    )
})

t.test('only texts and button payloads are compared', async (t) => {
  const cut = (message: object) => {
    const value = { messages: [{ id: 'w', from: '15555550101', timestamp: '1', ...message }] }
    return cutPost(Buffer.from(JSON.stringify({ entry: [{ changes: [{ field: 'messages', value }] }] })))
      ?.body
  }
  const [text, button] = [{ body: 'STOP' }, { payload: 'STOP', text: 'STOP' }]
  t.ok(cut({ type: 'text', text }))
  t.ok(cut({ type: 'button', button }))
  for (const message of [
    { type: 'image', text, button },
    { type: 'text', button },
    { type: 'button', text, button: { payload: 'x', text: 'STOP' } },
    { type: 'interactive', interactive: { button_reply: { id: 'STOP', title: 'STOP' } } },
  ])
    t.equal(cut(message), null, JSON.stringify(message))
})

t.test('keeps the number, choice and time of a preference', async (t) => {
  const wish = {
    wa_id: '15555550101',
    category: 'marketing_messages',
    value: 'stop',
    timestamp: 1_790_000_000,
  }
  const value = {
    metadata: { phone_number_id: '100', display_phone_number: '15555550100' },
    contacts: [{ profile: { name: 'Ana' }, wa_id: '15555550101' }],
    user_preferences: [
      { ...wish, detail: 'words' },
      { ...wish, category: 'other' },
    ],
  }
  const post = { entry: [{ id: '1', changes: [{ field: 'user_preferences', value }] }] }
  const cut = cutPost(Buffer.from(JSON.stringify(post)))
  t.same(JSON.parse(String(cut?.body)).entry[0].changes[0].value, {
    metadata: { phone_number_id: '100' },
    user_preferences: [wish],
  })
  t.equal(cut?.ignored.event, 1)
})
