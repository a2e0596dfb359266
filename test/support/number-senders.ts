/** Teams that send WhatsApp messages from their own numbers, and workers that deliver them. */
import { sql } from 'slonik'
import type { CloudMessage } from '../sandbox/whatsapp.ts'
import { adminCli } from './admin.ts'
import { BUSINESS_ACCOUNT_ID, startCloud } from './cloud.ts'
import { makeTeam, startService } from './service.ts'
import type { Test } from './tap.ts'
import { type Json, makeTemplate, sendWhatsapp } from './whatsapp.ts'
import type { answering } from './whatsapp-delivery.ts'
import { giveNumber, makeDefaultNumber, makeNumber } from './whatsapp-numbers.ts'
import { startWorker } from './worker.ts'

type Script = (message: CloudMessage) => ReturnType<typeof answering> | 'hang' | undefined

/** Returns the sending number of a message. */
export const numberOf = ({ path }: Pick<CloudMessage, 'path'>): string => path.split('/')[2] ?? ''

/** Starts a service, with functions to create teams and to start the provider for a test. */
export async function startNumbers(t: Test) {
  const service = await startService(t)
  const { database } = service
  let made = 0

  /** Creates a team with a template, and with its own number unless `own` is false. */
  async function sender({
    own = true,
    account_id = 'waba-2',
    messages_per_second = 1_000,
    definition,
  }: {
    own?: boolean
    account_id?: string
    messages_per_second?: number
    definition?: Json
  } = {}) {
    const team = await makeTeam(service)
    const template = await makeTemplate(service, team.id, definition)
    const name = `n${++made}`
    const given = {
      name,
      phone_number_id: `id-${name}`,
      account_id,
      token: `token-${name}`,
      messages_per_second,
    }
    const number = own ? await makeNumber(service, given) : null
    if (number) await giveNumber(service, team.id, name)
    const send = (changes: Json = {}) => sendWhatsapp(service, team, template.id, changes)
    return { team, template, name, phone_number_id: `id-${name}`, send }
  }

  async function begin(t: Test, onMessage: Script = () => undefined, concurrency = 20) {
    await database.query(sql.unsafe`delete from pgboss.job where name like 'deliver-whatsapp%'`)
    const cloud = await startCloud(t, { script: { onMessage } })
    await makeDefaultNumber(service, { phone_number_id: '100000000000002', account_id: BUSINESS_ACCOUNT_ID })
    const work = async () => await startWorker(t, service, { whatsapp: cloud.delivery, concurrency })
    const from = (id: string) => cloud.messages().filter((message) => numberOf(message) === id)
    return { cloud, work, from }
  }
  return { service, database, cli: adminCli({ DATABASE_URL: service.url }), sender, begin }
}
