/**
 * WhatsApp messages while a worker of the previous version runs with new web processes. It can send text from
 * the default number. Version 0.1.0 supports neither media nor a team's number.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type CloudMessage, startWhatsappSandbox } from '../sandbox/whatsapp.ts'
import { DEMO_NUMBER, demoAccounts } from '../sandbox/whatsapp-magic.ts'
import { ACCESS_TOKEN, BUSINESS_ACCOUNT_ID, PHONE_NUMBER_ID } from '../support/cloud.ts'
import type { Teardown } from '../support/smtp-sink.ts'
import { aMessage, aTemplate, type Json, numbers } from '../support/whatsapp.ts'
import { until } from '../support/worker.ts'

/** Runs a command of the new version. @returns its output. */
type Admin = (args: readonly string[], input?: string) => Promise<{ id: string; key: string }>

const PICTURE = 'https://cdn.example.com/a.png'
/** How many are sent of each kind at once and for a later time, and how much later, in milliseconds. */
const EACH = 10
const LATER = 3_000

type Kind = { what: string; number: string; image: boolean; key: string; body: Json }

export async function startWhatsapp(t: Teardown) {
  const sandbox = await startWhatsappSandbox({ port: 0, most: 10_000, accounts: demoAccounts(ACCESS_TOKEN) })
  t.teardown(() => sandbox.close())
  const env = {
    ...{ WHATSAPP_API_URL: sandbox.url, WHATSAPP_ACCESS_TOKEN: ACCESS_TOKEN },
    ...{ WHATSAPP_PHONE_NUMBER_ID: PHONE_NUMBER_ID, WHATSAPP_BUSINESS_ACCOUNT_ID: BUSINESS_ACCOUNT_ID },
  }
  let kinds: Kind[] = []

  /** Makes a team with a template. */
  async function sender(admin: Admin, scratch: string, { image = false, own = false }): Promise<Kind> {
    const name = `${own ? 'own' : 'default'}-${image ? 'image' : 'text'}`
    const { id: team } = await admin(['team', 'create', '--name', name, '--plan', 'pro'])
    const { key } = await admin(['key', 'create', team, '--name', name, '--scopes', 'whatsapp:send'])
    if (own) await admin(['team', 'number', team, DEMO_NUMBER.name])
    const file = join(scratch, `${name}.json`)
    await writeFile(file, JSON.stringify(aTemplate(image ? { header: { format: 'IMAGE' } } : {})))
    const { id } = await admin(['whatsapp-template', 'create', team, '--file', file])
    const body = image ? aMessage(id, { parameters: { 'header:1': PICTURE, 'body:1': 'Ana' } }) : aMessage(id)
    return { what: name, number: own ? DEMO_NUMBER.phone_number_id : PHONE_NUMBER_ID, image, key, body }
  }

  const isOf = ({ number, image }: Kind, { path, body }: CloudMessage): boolean =>
    path.split('/')[2] === number &&
    (body.template?.components ?? []).some(({ type }) => type === 'header') === image
  const arrived = (kind: Kind) => sandbox.messages().filter((message) => isOf(kind, message)).length
  const wanted = 2 * EACH

  return {
    env,
    /** Makes the teams, once no web process of the version before is running. */
    async begin(admin: Admin, scratch: string): Promise<void> {
      const { name, phone_number_id, account_id, token } = DEMO_NUMBER
      await admin(
        ['number', 'add', name, '--phone-number-id', phone_number_id, '--account-id', account_id],
        token,
      )
      kinds = [
        await sender(admin, scratch, {}),
        await sender(admin, scratch, { image: true }),
        await sender(admin, scratch, { own: true }),
        await sender(admin, scratch, { image: true, own: true }),
      ]
    },
    /**
     * Sends of each kind, at once and for a later time. If the only worker is from a version without media and
     * teams' numbers, it may only send the first kind.
     */
    async send(base: string, { onlyText }: { onlyText: boolean }): Promise<void> {
      const scheduled_at = new Date(Date.now() + LATER).toISOString()
      for (const { key, body } of kinds)
        for (const changes of [{ to: numbers(EACH) }, { to: numbers(EACH, EACH), scheduled_at }]) {
          const headers = { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }
          const given = { method: 'POST', headers, body: JSON.stringify({ ...body, ...changes }) }
          const { status } = await fetch(`${base}/v1/whatsapp/messages`, given)
          if (status !== 201) throw new Error(`a WhatsApp send got ${status}`)
        }
      const [text] = kinds
      if (text) await until('the texts have left', () => arrived(text) >= wanted, 30)
      await sleep(LATER)
      const early = sandbox.messages().length - (text ? arrived(text) : 0)
      if (onlyText && early > 0)
        throw new Error(`an old worker sent ${early} WhatsApp messages that are for newer ones`)
    },
    /** Waits for all. @returns the faults. */
    async end(): Promise<string[]> {
      const all = kinds.length * wanted
      await until('the WhatsApp messages have left', () => sandbox.messages().length >= all, 60).catch(
        () => {},
      )
      await sleep(1_000)
      const faults = kinds.flatMap((kind) =>
        arrived(kind) === wanted ? [] : [`${kind.what}: ${arrived(kind)} of ${wanted} WhatsApp messages`],
      )
      const others = sandbox.messages().filter((message) => !kinds.some((kind) => isOf(kind, message)))
      return others.length > 0 ? [...faults, `${others.length} WhatsApp messages were sent wrongly`] : faults
    },
  }
}
