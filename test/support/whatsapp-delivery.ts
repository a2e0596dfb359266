/** Set-up for tests of WhatsApp delivery: a team, a scripted Cloud API, and a worker. */
import type { Test } from 'tap'
import { eventsOfMessage } from '../../db/messages/whatsapp/events.sql.ts'
import { messageById } from '../../db/messages/whatsapp/messages.sql.ts'
import {
  type CloudAnswer,
  type CloudMessage,
  type CloudStatus,
  cloudError,
  statusOf,
  statusWebhook,
} from '../sandbox/whatsapp.ts'
import { startCloud } from './cloud.ts'
import { sendersOf } from './rows.ts'
import { makeTeam, startService, WHATSAPP_APP_SECRET } from './service.ts'
import { type Json, jobOf, loseJobs, makeTemplate, sendWhatsapp } from './whatsapp.ts'
import { startWorker, until } from './worker.ts'

type Script = (message: CloudMessage) => CloudAnswer | undefined | Promise<CloudAnswer | undefined>
type Options = { onMessage?: Script; provider?: Json; definition?: Json }

/** Builds a response with a provider's error. */
export const answering = (code: number, status = 400) => ({
  status,
  body: cloudError(code, 'Words', 'Details'),
})

/** Starts a service, with functions for teams that send WhatsApp messages. */
export async function startDeliveries(t: Test) {
  const service = await startService(t)
  let begun = 0

  /** Starts a team with a template, a scripted Cloud API that reports to our hook, and a worker. */
  async function begin(t: Test, { onMessage, provider = {}, definition }: Options = {}) {
    await loseJobs(service)
    const team = await makeTeam(service)
    const template = await makeTemplate(service, team.id, definition)
    const cloud = await startCloud(
      t,
      {
        script: onMessage ? { onMessage } : {},
        webhook: { url: `${service.base}/hooks/whatsapp`, app_secret: WHATSAPP_APP_SECRET },
      },
      { phone_number_id: `number-${++begun}`, ...provider },
    )
    const send = (changes: Json = {}) => sendWhatsapp(service, team, template.id, changes)
    const one = async (changes: Json = {}): Promise<string> => (await send(changes))[0] ?? ''
    const row = async (id: string) => {
      const found = await messageById(service.database, team.id, id)
      if (!found) throw new Error('the row is gone')
      return found
    }
    /** Sends a message, and waits until the API has accepted it. */
    const oneTaken = async (changes: Json = {}): Promise<string> => {
      const id = await one(changes)
      await until('it is taken', async () => (await row(id)).provider_message_id !== null)
      return id
    }
    /** Reports a status of the latest message to our hook, from the number that sent it. */
    const report = async (status: CloudStatus): Promise<void> => {
      const message = cloud.messages().at(-1)
      if (!message) throw new Error('no message')
      await cloud.post(statusWebhook(message.path.split('/')[2] ?? '', [statusOf(message, status)]))
    }
    const kinds = async (id: string) =>
      (await eventsOfMessage(service.database, team.id, id)).map(({ kind }) => kind)
    const sender = async () =>
      (await sendersOf(service)).find(
        ({ key }) => key === `whatsapp:${cloud.delivery.number?.phone_number_id}`,
      )
    /** True if a message's job waits after that number of attempts. */
    const waits = async (id: string, tries: number): Promise<boolean> =>
      (await kinds(id)).length === tries && (await jobOf(service, id))?.state === 'retry'
    const work = async () => await startWorker(t, service, { whatsapp: cloud.delivery })
    return { team, template, cloud, send, one, oneTaken, report, row, kinds, waits, sender, work }
  }
  return { service, begin }
}
