/**
 * Makes the SDK look up credentials: in the environment, in files, from a process, a token service or a metadata
 * service. The lookup and its HTTP requests have limits here, because the SDK has none. The SDK caches and renews
 * credentials, which are never read here.
 */
import type { SESv2Client } from '@aws-sdk/client-sesv2'
import { boundLibraries } from '../../../db/process/http-client.ts'

/** Far more than any credentials, and the time limit of one request for them in milliseconds. */
const LOOK_UP_LIMITS = { bytes: 64 * 1024, ms: 5_000 }

/** Limits the SDK's own requests. @returns a function that removes the limits. */
export const boundLookUps = (): (() => void) => boundLibraries(LOOK_UP_LIMITS)

/** Waits until the client has credentials. @throws the SDK's Error, or one named after it on a timeout. */
export async function awaitCredentials({ config }: SESv2Client, ms: number): Promise<void> {
  const { promise: late, reject } = Promise.withResolvers<never>()
  const words = `no credentials within ${ms / 1_000} s`
  const fault = Object.assign(new Error(words), { name: 'CredentialsProviderError' })
  const timer = setTimeout(reject, ms, fault)
  try {
    await Promise.race([config.credentials(), late])
  } finally {
    clearTimeout(timer)
  }
}
