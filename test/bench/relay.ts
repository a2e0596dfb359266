/**
 * Opens an API and a worker with a sink for their emails, and measures the rates of several places in turns.
 */
import type { TestTeam } from '../support/service.ts'
import { seconds, upTo } from './figures.ts'
import { postBatches } from './load.ts'
import { type Place, takeTurns } from './rig.ts'
import { startSmtpSink } from './sinks.ts'

const BYTES = 4_096
/** The number of emails per turn, and in the warm-up before it. */
export const [MAILS, WARM] = [upTo(1_500), 200]

/**
 * Emails per second until the last one is at the sink, and until the work that follows each turn is also
 * done.
 */
export type Rates = { mails: number; whole: number }

/** Opens an API and a worker of a place, and a sink for their emails. */
export async function openRelay(place: Place) {
  const sink = await startSmtpSink()
  const smtp = `smtp://127.0.0.1:${sink.port}?ignoreTLS=true`
  const api = await place.api()
  const worker = await place.worker({ SMTP_URL: smtp, WEBHOOK_ALLOW: '127.0.0.0/8' })
  return {
    /** @param settled waits for the work that follows the emails, so that it doesn't affect the next turn. */
    async pour(team: TestTeam, count: number, settled = async (): Promise<void> => {}): Promise<Rates> {
      const before = sink.taken()
      const took = await seconds(async () => {
        await postBatches(api.base, team, count, BYTES)
        await sink.until(before + count)
      })
      return { mails: count / took, whole: count / (took + (await seconds(settled))) }
    },
    pause: () => [api, worker].forEach((one) => void one.pause()),
    resume: () => [api, worker].forEach((one) => void one.resume()),
    async close() {
      await Promise.all([api.stop(), worker.stop()])
      await sink.stop()
    },
  }
}

/** Returns the total rate of turns that each did the same amount of work. */
export const overTime = (rates: readonly number[]): number =>
  rates.length / rates.reduce((sum, rate) => sum + 1 / rate, 0)

/** Measures emails per second in each of these places, in turns. */
export async function pourInTurns(places: readonly { place: Place; team: TestTeam }[], rounds: number) {
  const relays = await Promise.all(
    places.map(async ({ place, team }) => ({ team, ...(await openRelay(place)) })),
  )
  const rates = await takeTurns(relays, rounds, async ({ team, pour }) => {
    await pour(team, WARM)
    return (await pour(team, MAILS)).mails
  })
  for (const relay of relays) await relay.close()
  return rates.map(overTime)
}
