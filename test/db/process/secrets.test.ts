/** The use of SECRET_KEY, its replacement, and weak keys. */
import { openSecrets } from '../../../db/process/canary.ts'
import { createSecrets } from '../../../db/process/secrets.ts'
import { isWeakKey } from '../../../db/process/weak-key.ts'
import { testDatabase } from '../../support/database.ts'
import { openPool } from '../../support/pool.ts'
import t from '../../support/tap.ts'

const OLD = '5b1c90d2a7e84f63'
const NEW = 'f07a3d9be2186c45'
const text = Buffer.from('text')

t.test('decrypts only for the same purpose and owner', async (t) => {
  const secrets = createSecrets(OLD)
  const sealed = secrets.encrypt('dkim', text, 'a')
  t.same(secrets.decrypt('dkim', sealed, 'a'), text)
  t.throws(() => secrets.decrypt('dkim', sealed, 'b'))
  t.throws(() => secrets.decrypt('dkim', sealed))
  t.throws(() => secrets.decrypt('canary', sealed, 'a'))
  t.throws(() => createSecrets(NEW).decrypt('dkim', sealed, 'a'))
  const empty = secrets.encrypt('dkim', Buffer.alloc(0), 'a')
  t.same(secrets.decrypt('dkim', empty, 'a'), Buffer.alloc(0))
  t.throws(() => secrets.decrypt('dkim', empty.subarray(0, 24), 'a'), 'a part of the right tag is not enough')
  for (const length of [0, 12, 16, 24, 27])
    t.throws(() => secrets.decrypt('dkim', sealed.subarray(0, length), 'a'), `${length} bytes: a cut tag`)
})

t.test('both keys decrypt, and only the first encrypts', async (t) => {
  const [before, after] = [createSecrets(OLD), createSecrets(NEW)]
  const both = createSecrets(NEW, OLD)
  t.same(both.decrypt('dkim', before.encrypt('dkim', text, 'a'), 'a'), text)
  t.same(both.decrypt('dkim', after.encrypt('dkim', text, 'a'), 'a'), text)
  t.same(after.decrypt('dkim', both.encrypt('dkim', text, 'a'), 'a'), text)
  t.ok(both.verify('verp', text, before.sign('verp', text)))
  t.ok(both.verify('verp', text, after.sign('verp', text)))
  t.notOk(both.verify('verp', text, before.sign('unsubscribe', text)))
  t.notOk(both.verify('verp', text, before.sign('verp', text).subarray(0, 7)), 'too short')
  t.same(both.sign('verp', text), after.sign('verp', text))
  t.same(both.signatures('verp', text), [after.sign('verp', text), before.sign('verp', text)])
  t.same(after.signatures('verp', text), [after.sign('verp', text)])
})

t.test("rejects another database's key unless it is also set", async (t) => {
  const database = await openPool(t, (await testDatabase(t)).url, { size: 2 })
  await Promise.all([1, 2, 3].map(() => openSecrets(database, { SECRET_KEY: OLD })))
  await openSecrets(database, { SECRET_KEY: OLD, SECRET_KEY_PREVIOUS: NEW })
  await openSecrets(database, { SECRET_KEY: NEW, SECRET_KEY_PREVIOUS: OLD })
  await t.rejects(openSecrets(database, { SECRET_KEY: NEW }), {
    name: 'SettingsFault',
    message: /SECRET_KEY isn't the key that this database was used with\. .* SECRET_KEY_PREVIOUS/,
  })
})

t.test('recognizes typed keys as weak, and random ones as strong', async (t) => {
  const weak = [
    'aaaaaaaaaaaaaaaa',
    'password12345678',
    'changeme-changeme-changeme',
    'abcdefghijklmnopqrstuvwxyz0123456789',
    '0123456789abcdef0123456789abcdef',
    'qwertyuiopasdfghjklzxcvbnm'.slice(0, 10).repeat(3),
    'my-secret-key-123',
    'SuperSecretKey2026',
    'a1a1a1a1a1a1a1a1a1a1a1a1',
    'please-change-this-key',
    '0000000000000001',
  ]
  const strong = weak.filter((key) => !isWeakKey(key))
  t.strictSame(strong, [])
  const random =
    '5b1c90d2a7e84f63 Vq3zR8w/1mXc+Lp0 8f14e45fceea167a5a36dedd4bea2543 hunch-teapot-orbit-velvet'.split(' ')
  t.strictSame(random.filter(isWeakKey), [])
})
