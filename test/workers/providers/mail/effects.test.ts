/** What a refusal means for a contact, by its enhanced status code. DECISIONS: Delivery reports, DSN classes. */
import {
  effectOfFailure,
  effectOfHardBounce,
  effectOfRefusal,
} from '../../../../workers/providers/mail/effects.ts'
import t from '../../../support/tap.ts'

const OF_THE_ADDRESS = ['5.1.1', '5.1.2', '5.1.3', '5.1.6', '5.1.10']
const NOT_OF_THE_ADDRESS = ['5.1.7', '5.1.8', '5.2.2', '5.3.4', '5.6.0', '5.6.10', '5.7.1', '5.7.26']
const UNCLEAR = ['5.0.0', '5.1.0', '5.2.1', '5.4.4', '5.2.22', '15.2.2']

t.test('in the dialogue only a code that names the address is proof; a bare 550 is a hint', async (t) => {
  for (const code of OF_THE_ADDRESS) t.equal(effectOfRefusal(550, code), 'hard', code)
  for (const code of [...NOT_OF_THE_ADDRESS, ...UNCLEAR]) t.equal(effectOfRefusal(550, code), 'none', code)
  t.equal(effectOfRefusal(550, ''), 'soft')
  t.equal(effectOfRefusal(554, ''), 'none')
})

t.test('who knows that a recipient is gone is believed, unless the code says otherwise', async (t) => {
  for (const code of [...OF_THE_ADDRESS, ...UNCLEAR, '']) t.equal(effectOfHardBounce(code), 'hard', code)
  for (const code of NOT_OF_THE_ADDRESS) t.equal(effectOfHardBounce(code), 'none', code)
})

t.test(
  'a notification of a failure for now is soft, for good is hard, of neither says nothing',
  async (t) => {
    for (const code of ['4.2.2', '4.0.0']) t.equal(effectOfFailure(code), 'soft', code)
    for (const code of OF_THE_ADDRESS) t.equal(effectOfFailure(code), 'hard', code)
    for (const code of [...NOT_OF_THE_ADDRESS, '', '2.0.0', '1.5.', '1.4.'])
      t.equal(effectOfFailure(code), 'none', code)
  },
)
