/** Set-up for tests of the SMTP adapter: a provider, and a relay for it. */
import type { Test } from 'tap'
import type { EmailDelivery, Outcome } from '../../workers/providers/provider.ts'
import { createSmtpProvider, type SmtpOptions } from '../../workers/providers/smtp/adapter.ts'
import type { SmtpScript } from '../sandbox/smtp.ts'
import { type SinkOptions, startSmtpSink } from './smtp-sink.ts'

/** Creates a provider that closes with the test. */
export const provide = (t: Test, options: Partial<SmtpOptions> & { url: string }) => {
  const provider = createSmtpProvider({ max_connections: 5, ...options })
  t.teardown(() => provider.close())
  return provider
}

/** Starts a relay with scripted replies, and a provider for it. */
export const start = async (t: Test, script: SmtpScript = {}, options: SinkOptions = {}) => {
  const sink = await startSmtpSink(t, script, options)
  return { sink, provider: provide(t, { url: sink.url }) }
}

/** Returns the outcome of an email to one recipient. */
export const only = ({ outcomes }: EmailDelivery): Outcome | undefined => [...outcomes.values()][0]
