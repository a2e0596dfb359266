/** Replacing SECRET_KEY, and errors about invalid keys. */
import { sql } from 'slonik'
import { mixed, object } from 'yup'
import { createSecrets, type Secrets } from '../../../db/process/secrets.ts'
import { readSendingDomains } from '../../../workers/channels/sending-domains.ts'
import { adminCli } from '../../support/admin.ts'
import { testDatabase } from '../../support/database.ts'
import { SECRET_KEY } from '../../support/environment.ts'
import { openPool } from '../../support/pool.ts'
import t from '../../support/tap.ts'

const NEW = 'f07a3d9be2186c45'

t.test('after secret reseal, SECRET_KEY_PREVIOUS is no longer needed', async (t) => {
  const { url } = await testDatabase(t)
  const database = await openPool(t, url, { size: 1 })
  const cli = adminCli({ DATABASE_URL: url })
  const { id } = await cli.json(['team', 'create', '--name', 'Acme'])
  const { id: domain_id, dns_records } = await cli.json(['domain', 'add', id, 'a.test', '--verified'])
  const [selector] = dns_records[0].name.split('.')
  await cli.json(['domain', 'ed25519', id, 'a.test', 'on'])
  const keys = { dkim: { selector }, ed25519: { domain: 'a.test' } }
  await cli.json(['domain', 'rekey', id, 'a.test'])
  await cli.json(['webhook', 'add', id, '--url', 'https://hooks.example.com'])
  const sealed = (plain: string, use: string) =>
    sql.binary(createSecrets(SECRET_KEY).encrypt('whatsapp', Buffer.from(plain), `acme/${use}`))
  await database.query(sql.unsafe`
    insert into whatsapp_numbers (name, phone_number_id, account_id, access_token, app_secret, created_at)
    values ('acme', '100', '200', ${sealed('token', 'access_token')}, ${sealed('app', 'app_secret')}, now())`)
  const openedBy = async (secretKey: string) => {
    const row = object({ access_token: mixed<Buffer>().defined(), app_secret: mixed<Buffer>().defined() })
    const found = await database.one(sql.type(row)`select access_token, app_secret from whatsapp_numbers`)
    const secrets = createSecrets(secretKey)
    return (['access_token', 'app_secret'] as const).map((use) =>
      secrets.decrypt('whatsapp', found[use], `acme/${use}`).toString(),
    )
  }
  const keyWith = async (secrets: Secrets) =>
    (
      await readSendingDomains(database, { secrets, ours: true }, [
        { team_id: id, domain_id, from_address: 'x@a.test' },
      ])
    ).get(domain_id)
  const keyBy = (secretKey: string) => keyWith(createSecrets(secretKey))

  const other = { env: { SECRET_KEY: NEW } }
  const fault = await cli.fault(['secret', 'reseal'], other)
  t.match(fault, /SECRET_KEY isn't the key that this database was used with/)
  t.match(await keyBy(SECRET_KEY), keys)
  const both = { env: { SECRET_KEY: NEW, SECRET_KEY_PREVIOUS: SECRET_KEY } }
  t.same(await cli.json(['secret', 'reseal'], both), { domains: 1, webhooks: 1, numbers: 1 })
  t.match(await keyBy(NEW), keys)
  const secrets = createSecrets(NEW)
  const parsed = async () => {
    const domain = await keyWith(secrets)
    return domain && 'dkim' in domain ? domain.dkim?.private_key : null
  }
  const key = await parsed()
  t.ok(key)
  t.equal(await parsed(), key, 'a key is parsed once')
  t.ok((await keyBy(SECRET_KEY)) instanceof Error)
  t.strictSame(await openedBy(NEW), ['token', 'app'])
  await t.rejects(openedBy(SECRET_KEY))
  const resealed = await cli.json(['secret', 'reseal'], other)
  t.same(resealed, { domains: 1, webhooks: 1, numbers: 1 }, 'without the old key too')
  t.match(await cli.fault(['domain', 'add', id, 'b.test']), /SECRET_KEY isn't the key that/)
})

t.test('rejects a weak SECRET_KEY and explains how to create one', async (t) => {
  const cli = adminCli({ DATABASE_URL: (await testDatabase(t)).url, SECRET_KEY: 'password12345678' })
  t.match(await cli.fault(['plan', 'list']), /SECRET_KEY is too easy to guess. .* `openssl rand -hex 16`/)
})
