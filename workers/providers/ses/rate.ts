/**
 * Reads the SES account's rate, in recipients per second, with GetAccount, once every few minutes. Only the first
 * email waits for the response. After a lost or forbidden response the last rate stays in effect.
 */
import { GetAccountCommand, type SESv2Client } from '@aws-sdk/client-sesv2'

const REFRESH_MS = 5 * 60_000
const RETRY_MS = 60_000
const TIMEOUT_MS = 5_000
/** The minimum rate of an account outside AWS's sandbox, for when GetAccount isn't allowed. */
const FALLBACK_RATE = 14

type SesRate = () => Promise<number>

/** @param held resolves once the client has credentials. @param warn is called if the rate is unknown. */
export function createRate(
  { client, held }: { client: SESv2Client; held: () => Promise<void> },
  warn: (words: string) => void,
  refresh = REFRESH_MS,
): SesRate {
  let rate: number | null = null
  let next = 0
  let asking: Promise<void> | null = null

  const ask = async (): Promise<void> => {
    try {
      await held()
      const signal = AbortSignal.timeout(TIMEOUT_MS)
      const { SendQuota } = await client.send(new GetAccountCommand({}), { abortSignal: signal })
      const found = SendQuota?.MaxSendRate
      if (found === undefined || !(found > 0)) throw new Error('GetAccount returned no rate')
      rate = found
      next = performance.now() + refresh
    } catch (error) {
      rate ??= FALLBACK_RATE
      next = performance.now() + Math.min(RETRY_MS, refresh)
      const name = error instanceof Error ? error.name : 'Error'
      warn(`could not read the account's send rate (ses:GetAccount): ${name}. Sending ${rate} per second`)
    }
  }
  return async () => {
    if (performance.now() >= next && asking === null) {
      asking = ask().finally(() => {
        asking = null
      })
    }
    if (rate === null) await asking
    return rate ?? FALLBACK_RATE
  }
}
