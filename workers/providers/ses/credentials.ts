/**
 * Has the SDK look up its credentials: in the environment, in files, from a process, a token service or a metadata
 * service. Promises: a look-up ends within its time, and what it asks over HTTP within bounds of ours, since the SDK
 * has none of its own; what it has found is the SDK's to keep and to renew. Must not read credentials.
 */
import type { SESv2Client } from '@aws-sdk/client-sesv2'
import { boundLibraries } from '../../../db/process/http-client.ts'

/** Far more than any credentials; and how long one request for them may take, in milliseconds. */
const LOOK_UP_LIMITS = { bytes: 64 * 1024, ms: 5_000 }

/** Bounds what the SDK asks by itself. @returns how to end it. */
export const boundLookUps = (): (() => void) => boundLibraries(LOOK_UP_LIMITS)

/** Waits until the client has credentials. @throws Error as the SDK's, or of its name once it is too late. */
export async function holdCredentials({ config }: SESv2Client, ms: number): Promise<void> {
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
